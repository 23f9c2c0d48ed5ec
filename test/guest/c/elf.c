// Programs made by hand: segments in every order and shape, broken headers,
// interpreters, scripts. Linux finds most faults when the old program is gone already,
// and then kills the process.
#include "gt.h"
#include <elf.h>

enum { SIZE = 0x5000, CODE = 0x1000, R = PF_R, RW = PF_R | PF_W, RX = PF_R | PF_X, RWX = PF_R | PF_W | PF_X };

static unsigned char image[SIZE];
static Elf64_Ehdr *const header = (Elf64_Ehdr *)image;
static Elf64_Phdr *const headers = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));

// begin makes a program without segments whose code, at file offset CODE, is exit(42).
static void begin(int type, int segments)
{
	static const unsigned char code[] = {0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05};
	memset(image, 0, SIZE);
	memcpy(header->e_ident, "\177ELF\2\1\1", 7);
	header->e_type = type;
	header->e_machine = EM_X86_64;
	header->e_version = 1;
	header->e_entry = 0x400000 + CODE;
	header->e_phoff = header->e_ehsize = sizeof *header;
	header->e_phentsize = sizeof *headers;
	header->e_phnum = segments;
	memcpy(image + CODE, code, sizeof code);
}

static void segment(int i, int flags, long offset, long address, long file, long memory, long align)
{
	headers[i] = (Elf64_Phdr){PT_LOAD, flags, offset, address, address, file, memory, align};
}

// text is the segment with the code, from the file's beginning.
static void text(int i) { segment(i, RX, 0, 0x400000, 0x2000, 0x2000, 0x1000); }

// exits_with makes the code exit with the byte at an address, after a store there.
static void exits_with(int address, int store)
{
	unsigned char code[] = {0xc6, 0x04, 0x25, 0, 0, 0, 0, 7, 0x0f, 0xb6, 0x3c, 0x25, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05};
	memcpy(code + 3, &address, 4);
	memcpy(code + 12, &address, 4);
	memcpy(image + CODE, store ? code : code + 8, store ? sizeof code : sizeof code - 8);
}

static void put(const char *path, const void *text, size_t size)
{
	unlink(path);
	int fd = must(open(path, O_WRONLY | O_CREAT, 0755), path);
	must(write(fd, text, size), "write");
	close(fd);
}

static void try(const char *what, const char *path)
{
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_IGN); // it does not help
		char *argv[] = {"x", NULL};
		execve(path, argv, argv + 1);
		say("%s: %s", what, name_of(errno));
		_exit(0);
	}
	status(what, wait_for(pid));
}

static void run(const char *what)
{
	put("program", image, SIZE);
	try(what, "./program");
}

TEST(shapes, "segments of all shapes")
{
	begin(ET_EXEC, 1), text(0), run("plain");
	begin(ET_EXEC, 1), segment(0, RX, CODE, 0x401000, 0x100, 0x100, 0x1000), run("without the headers");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0, 0x500000, 0, 0x3000, 0x1000), exits_with(0x502000, 1), run("memory only");
	begin(ET_EXEC, 2), text(1), segment(0, RW, 0, 0x500000, 0, 0x3000, 0x1000), exits_with(0x502000, 1), run("memory only, first");
	begin(ET_EXEC, 2), text(0), segment(1, R, 0, 0x500000, 0, 0x3000, 0x1000), exits_with(0x502000, 1), run("memory only can be written");
	begin(ET_EXEC, 2), text(1), segment(0, RW, 0x2000, 0x500000, 0x1000, 0x3000, 0x1000), image[0x2005] = 33;
	exits_with(0x500005, 0), run("descending");
	begin(ET_EXEC, 2), segment(0, RX, 0, 0x400000, 0x3000, 0x3000, 0x1000), segment(1, RX, 0x3000, 0x401000, 0x1000, 0x1000, 0x1000);
	memcpy(image + 0x3000, image + CODE, 12), image[0x3006] = 43, run("overlap");
	begin(ET_EXEC, 2), segment(1, RX, 0, 0x400000, 0x3000, 0x3000, 0x1000), segment(0, RX, 0x3000, 0x401000, 0x1000, 0x1000, 0x1000);
	memcpy(image + 0x3000, image + CODE, 12), image[0x3006] = 43, run("overlap, the other order");
	begin(ET_EXEC, 2), segment(0, RX, 0, 0x400000, 0x1100, 0x1100, 0x1000), segment(1, RW, 0x1100, 0x401100, 0x100, 0x100, 0x1000);
	run("the later one's permissions hold");
	begin(ET_EXEC, 2), segment(0, RX, 0, 0x400000, 0x1100, 0x1100, 0x1000), segment(1, RWX, 0x1100, 0x401100, 0x100, 0x2000, 0x1000);
	exits_with(0x402fff, 1), run("zeroes behind a shared page");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0x2ff0, 0x500ff0, 0x10, 0x1010, 0x1000), image[0x3000] = 9;
	exits_with(0x501000, 0), run("zeroes on a page of their own");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0x2f00, 0x500f00, 0x10, 0x20, 0x1000), image[0x2f15] = 9;
	exits_with(0x500f15, 0), run("zeroes on the file's page");
	begin(ET_EXEC, 2), text(0), segment(1, R, 0x2f00, 0x500f00, 0x10, 0x20, 0x1000), image[0x2f15] = 9;
	exits_with(0x500f15, 0), run("no zeroes where nothing is written");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0x2f00, 0x500f00, 0x10, 0x10, 0x1000), image[0x2f15] = 9;
	exits_with(0x500f15, 0), run("no zeroes where none are asked for");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 8, 0x500000, 0, 0x20, 0x1000), run("no file, no alignment");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0, 0x500000, 0, 0, 0x1000), run("an empty one");
	begin(ET_EXEC, 1), segment(0, RX, 0, 0x400000, 0x20000, 0x20000, 0x1000), run("more than the file has");
	begin(ET_EXEC, 1), text(0), headers[0].p_align = 3, run("alignment 3");
	begin(ET_EXEC, 1), text(0), headers[0].p_align = 0, run("alignment 0");
	begin(ET_EXEC, 1), text(0), headers[0].p_flags = PF_X, run("execute only");
}

TEST(lost, "found out when it is too late")
{
	begin(ET_EXEC, 1), segment(0, RX, 8, 0x400000, 0x2000, 0x2000, 0x1000), run("offset and address do not agree");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 8, 0x500000, 0x20, 0x20, 0x1000), run("in the second");
	begin(ET_EXEC, 1), segment(0, RX, 0, 0x400000, 0x2000, 0x1000, 0x1000), run("more file than memory");
	begin(ET_EXEC, 1), segment(0, RX, 0, 0x400000, 0x2000, 1L << 47, 0x1000), run("too much memory");
	begin(ET_EXEC, 2), text(0), segment(1, RW, 0, 1L << 62, 0, 0x20, 0x1000), run("beyond the end");
	begin(ET_EXEC, 1), text(0), headers[0].p_filesz = headers[0].p_memsz = 0, run("empty");
	begin(ET_EXEC, 1), headers[0].p_type = PT_NOTE, run("nothing to load");
	begin(ET_EXEC, 1), text(0), header->e_entry = -1, run("entry beyond the end");
	begin(ET_EXEC, 1), text(0), header->e_entry = 0, run("entry 0");
	begin(ET_EXEC, 1), text(0), headers[0].p_flags = R, run("not executable");
	begin(ET_EXEC, 1), text(0), headers[0].p_flags = 0, run("no permissions");
	begin(ET_DYN, 2), text(0), segment(1, RW, 0, 0x100000000000, 0, 0x2000, 0x1000), run("a dynamic one that spans much");
}

TEST(refused, "no program at all")
{
	static const int types[] = {ET_NONE, ET_REL, ET_CORE, 5, 0xffff};
	for (int i = 0; i < 5; i++)
		begin(types[i], 1), text(0), run("type");
	begin(ET_EXEC, 0), run("no headers");
	begin(ET_EXEC, 1), text(0), header->e_phnum = 73, run("73 headers");
	begin(ET_EXEC, 1), text(0), header->e_phentsize = 32, run("small headers");
	begin(ET_EXEC, 1), text(0), header->e_machine = EM_AARCH64, run("machine");
	begin(ET_EXEC, 1), text(0), header->e_ident[EI_CLASS] = ELFCLASS32, run("the class does not count");
	begin(ET_EXEC, 1), text(0), header->e_ident[EI_DATA] = ELFDATA2MSB, run("nor does the order of bytes");
	begin(ET_EXEC, 1), text(0), header->e_ident[EI_VERSION] = header->e_version = 9, run("nor the version");
	begin(ET_EXEC, 1), text(0), header->e_phoff = -1, run("headers nowhere");
	begin(ET_EXEC, 1), text(0), header->e_phoff = SIZE - 16, run("headers cut off");
	begin(ET_EXEC, 1), text(0);
	for (int n = 0; n <= 64; n += 8)
		put("program", image, n), try("a short file", "./program");
}

TEST(dynamic, "programs for any address")
{
	begin(ET_DYN, 1), segment(0, RX, 0, 0, 0x2000, 0x2000, 0x1000), header->e_entry = CODE, run("at 0");
	begin(ET_DYN, 1), text(0), run("at 4 MiB");
	begin(ET_DYN, 1), segment(0, RX, 0, 0, 0x2000, 0x2000, 0x200000), header->e_entry = CODE, run("aligned to 2 MiB");
	begin(ET_DYN, 2), segment(0, RX, CODE, 0x201000, 0x1000, 0x1000, 0x1000), segment(1, RW, 0, 0, 0x1000, 0x1000, 0x1000);
	header->e_entry = 0x201000, run("descending");
	begin(ET_DYN, 2), segment(0, RX, 0, 0, 0x2000, 0x2000, 0x1000), segment(1, RW, 0, 0x10000000, 0, 0x2000, 0x1000);
	header->e_entry = CODE, run("memory far away");
}

// needs makes the second header name an interpreter whose path has so many bytes.
static void needs(const char *path, long size)
{
	strcpy((char *)image + 0x3000, path);
	headers[1] = (Elf64_Phdr){PT_INTERP, R, 0x3000, 0, 0, size, size, 1};
}

// interpreter makes ./loader, which exits with 55.
static void interpreter(int type)
{
	begin(type, 1), segment(0, RX, 0, 0, 0x2000, 0x2000, 0x1000);
	header->e_entry = CODE;
	image[CODE + 6] = 55;
}

static void with_loader(const char *what, int type)
{
	put("loader", image, SIZE);
	begin(type, 2), text(0), needs("loader", 7), run(what);
}

TEST(interpreters, "interpreters")
{
	begin(ET_EXEC, 2), text(0), needs("/nonexistent", 13), run("missing");
	begin(ET_EXEC, 2), text(0), needs("/nonexistent", 12), run("its path has no end");
	begin(ET_EXEC, 2), text(0), needs("", 1), run("its path is empty");
	begin(ET_EXEC, 2), text(0), needs("", 4097), run("its path is long");
	begin(ET_EXEC, 2), text(0), needs("", 100), headers[1].p_offset = SIZE - 16, run("its path is cut off");
	begin(ET_EXEC, 2), text(0), needs("/tmp", 5), run("a directory");
	put("short", "hello", 5);
	begin(ET_EXEC, 2), text(0), needs("short", 6), run("a short file");
	memset(image, 'x', SIZE), put("text", image, SIZE);
	begin(ET_EXEC, 2), text(0), needs("text", 5), run("a text");
	interpreter(ET_DYN), with_loader("runs", ET_EXEC);
	interpreter(ET_DYN), with_loader("runs for a dynamic program", ET_DYN);
	interpreter(ET_DYN), header->e_phnum = 0, with_loader("no headers", ET_EXEC);
	interpreter(ET_DYN), header->e_phentsize = 1, with_loader("small headers", ET_EXEC);
	interpreter(ET_REL), with_loader("type", ET_EXEC);
	interpreter(ET_DYN), header->e_machine = EM_386, with_loader("machine", ET_EXEC);
	interpreter(ET_DYN), headers[0].p_type = PT_NOTE, with_loader("nothing to load", ET_EXEC);
	interpreter(ET_DYN), headers[0].p_filesz = 0x3000, with_loader("more file than memory", ET_EXEC);
	interpreter(ET_DYN), header->e_entry = -1, with_loader("entry beyond the end", ET_EXEC);
	interpreter(ET_DYN), segment(0, RX, 0, 0x200000, 0x2000, 0x2000, 0x1000), header->e_entry = 0x201000, with_loader("not at 0", ET_EXEC);
	interpreter(ET_EXEC), segment(0, RX, 0, 0x700000, 0x2000, 0x2000, 0x1000), header->e_entry = 0x701000, with_loader("at an address of its own", ET_EXEC);
}

TEST(scripts, "scripts that lead to scripts, and their lines")
{
	begin(ET_EXEC, 1), text(0), put("program", image, SIZE);
	for (int i = 0; i < 8; i++) {
		char name[20], line[40];
		snprintf(name, sizeof name, "script%d", i);
		snprintf(line, sizeof line, i ? "#!./script%d\n" : "#!./program\n", i - 1);
		put(name, line, strlen(line));
		try(name, name);
	}
	static const char *const lines[] = {"#!program", "#! program \n", "#!\tprogram\targ\n", "#!\n", "#! \n", "#!/nope\n", "#!/tmp\n",
					    "# !program\n", "#!program/\n", "#!self\n"};
	char what[40];
	for (int i = 0; i < 10; i++) {
		put("self", lines[i], strlen(lines[i]));
		snprintf(what, sizeof what, "line %d", i);
		try(what, "./self");
	}
	for (int end = 250; end < 260; end++) {
		char line[300];
		memset(line, ' ', sizeof line);
		memcpy(line, "#!", 2);
		memcpy(line + end - 7, "program\n", 8);
		put("self", line, end + 1);
		snprintf(what, sizeof what, "the name ends at %d", end);
		try(what, "./self");
	}
	put("self", "#!program\n", 10);
	char *argv[] = {"x", NULL};
	for (int closes = 0; closes < 2; closes++) {
		int fd = must(open("self", O_RDONLY | (closes ? O_CLOEXEC : 0)), "open");
		status("a script by its descriptor", wait_for(FORK(err("execveat", syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH)))));
	}
}
