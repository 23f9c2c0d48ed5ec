// fsx [options] DIRECTORY: random operations on files, with an exact model.
//
//	-s SEED      the seed (1)
//	-n N         operations of each worker in a round (1000)
//	-t SECONDS   no new round after this time
//	-r N         rounds (2); between two, all is unmounted and mounted again, if there
//	             is a device, and every file is compared
//	-p N  -T N   processes, and threads of each: the workers (1 and 1)
//	-m DEVICE    mount this device on the directory, -y TYPE (ext4) with -o OPTIONS
//	-d NAME      work in this directory of it
//	-f           the disk may be full: ENOSPC, short counts and SIGBUS are right
//	-l           allow what Linux does: a direct write that finds no space does not tell how
//	             much it wrote, one beside stores to the same pages makes fsync fail
//	-x NAMES     leave out these operations (ops.c), to narrow a failure down
//	-N DEVICE    tell this disk what is done (test/nbd)
//	-c DEVICE    command this disk to fail (test/nbd): faults.c
//
// Each worker has files of its own; all have one in which each has a region, one that
// they lock, and one of which nobody knows what it holds. A worker's operations follow from the seed and its number alone.
#include "fsx.h"

struct options opt = {.seed = 1, .ops = 1000, .rounds = 2, .processes = 1, .threads = 1, .type = "ext4"};
struct shared *shared;

static void mount_disk(void)
{
	if (!opt.device)
		return;
	for (int i = 0; mount(opt.device, opt.dir, opt.type, 0, opt.data) < 0; i++) {
		if (i == 500 || errno != ENOENT)
			die("mount: %s", strerrorname_np(errno));
		usleep(10000);
	}
}

static void unmount_disk(void)
{
	if (chdir("/") < 0 || (opt.device && umount(opt.dir) < 0))
		die("umount: %s", strerrorname_np(errno));
}

static int flags_of(model *m)
{
	return access(m->name, F_OK) == 0 ? 0 : O_CREAT;
}

static long deadline;

// on_alarm ends the program when nobody has done anything for PATIENCE seconds, and tells
// what they were about: a call that hangs.
enum { PATIENCE = 100 };

static void on_alarm(int sig)
{
	static unsigned long before;
	unsigned long now = shared->steps;
	alarm(PATIENCE);
	if (now != before || now == 0) {
		before = now;
		return;
	}
	for (int i = 0; i < WORKERS * FILES + 3; i++) {
		model *m = &shared->files[i];
		struct logged *l = &m->log[m->number % LOGGED];
		if (m->number)
			dprintf(1, "    %s: %u %s off %ld n %ld, size %ld: %ld\n", m->name, l->number, l->what, l->off, l->n, l->size, l->result);
	}
	for (int i = 0; i < WORKERS; i++)
		if (shared->now[i])
			dprintf(1, "    worker %d: %s\n", i, shared->now[i]);
	die("nothing was done for %d seconds", PATIENCE);
}

static void *work(void *arg)
{
	worker w = {.number = (int)(long)arg};
	w.rng = opt.seed * 0x9e3779b97f4a7c15ul + (uint64_t)w.number * 0xbf58476d1ce4e5b9ul;
	w.rng ^= shared->files[w.number * FILES].number * 0x94d049bb133111ebul; // each round is another
	for (int i = 0; i < 10; i++)
		rnd(&w, 2);
	if (posix_memalign((void **)&w.a, PAGE, CHUNK) || posix_memalign((void **)&w.b, PAGE, CHUNK) || pipe(w.pipe) < 0)
		die("memory");
	fcntl(w.pipe[1], F_SETPIPE_SZ, 128 * 1024);
	for (int i = 0; i < FILES; i++) {
		w.own[i].m = &shared->files[w.number * FILES + i];
		open_file(&w, &w.own[i], flags_of(w.own[i].m));
	}
	w.region.m = &shared->files[WORKERS * FILES], w.locked.m = w.region.m + 1, w.chaos.m = w.region.m + 2;
	open_file(&w, &w.region, 0), open_file(&w, &w.locked, 0), open_file(&w, &w.chaos, 0);
	long k;
	for (k = 0; k < opt.ops && !shared->failed; k++) {
		unsigned long x = opt.notes ? 19 : rnd(&w, 20);
		shared->steps++;
		shared->now[w.number] = x < 2 ? "regions" : x < 4 ? "locked" : x == 4 ? "chaos" : "its own";
		if (x < 2)
			step_region(&w, &w.region);
		else if (x < 4)
			step_locked(&w, &w.locked);
		else if (x == 4)
			step_chaos(&w, &w.chaos);
		else
			step(&w, &w.own[rnd(&w, FILES)]);
		if (k % 64 == 0 && deadline && now_ms() > deadline)
			break;
	}
	shared->done += (unsigned long)k;
	shared->now[w.number] = NULL;
	for (int i = 0; i < FILES && !shared->failed; i++) {
		model *m = w.own[i].m;
		check_file(&w, &w.own[i]);
		close_file(&w.own[i]);
		if (w.own[i].anonymous) { // the next round makes it again
			m->size = 0;
			memset(m->data, 0, MOST);
		}
	}
	close_file(&w.region), close_file(&w.locked), close_file(&w.chaos);
	close(w.pipe[0]), close(w.pipe[1]), free(w.a), free(w.b);
	return NULL;
}

static void process(int p)
{
	pthread_t t[WORKERS];
	for (int i = 1; i < opt.threads; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(long)(p * opt.threads + i)))
			die("pthread_create");
	work((void *)(long)(p * opt.threads));
	for (int i = 1; i < opt.threads; i++)
		pthread_join(t[i], NULL);
	_exit(shared->failed);
}

// check_all compares every file after a mount.
static void check_all(void)
{
	worker w = {.number = -1};
	if (posix_memalign((void **)&w.a, PAGE, CHUNK) || posix_memalign((void **)&w.b, PAGE, CHUNK))
		die("memory");
	for (int i = 0; i < WORKERS * FILES + 2; i++) {
		file f = {.m = &shared->files[i]};
		int mine = i < opt.processes * opt.threads * FILES || i >= WORKERS * FILES;
		if (!mine || (f.m->size == 0 && access(f.m->name, F_OK) < 0))
			continue; // it was removed
		open_file(&w, &f, 0);
		check_file(&w, &f);
		close_file(&f);
	}
	free(w.a), free(w.b);
}

static void round_of_work(void)
{
	for (int p = 0; p < opt.processes; p++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (pid == 0)
			process(p);
	}
	int st;
	while (wait(&st) > 0)
		if (st != 0) {
			shared->failed = 1;
			if (WIFSIGNALED(st))
				dprintf(1, "fsx: seed %lu: a process was killed by signal %d\n", (unsigned long)opt.seed, WTERMSIG(st));
		}
	if (shared->failed)
		exit(1);
}

static void prepare(void)
{
	static const char *common[] = {"regions", "locked", "chaos"};
	for (int i = 0; i < WORKERS * FILES + 3; i++) {
		snprintf(shared->files[i].name, sizeof shared->files[i].name, i < WORKERS * FILES ? "f%d" : common[i - WORKERS * FILES], i);
		unlink(shared->files[i].name);
	}
	model *m = &shared->files[WORKERS * FILES];
	m->size = MOST;
	for (int i = 0; i < 3; i++) {
		int fd = open(m[i].name, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0 || ftruncate(fd, m[i].size) < 0)
			die("%s: %s", m[i].name, strerrorname_np(errno));
		close(fd);
	}
}

// filler takes the space that a small disk has, but for some, so that the files meet
// its end. What of it was accepted must be there in the end, too.
static long filler_size;

static void fill_disk(worker *w)
{
	int fd = open("filler", O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		die("filler: %s", strerrorname_np(errno));
	long n;
	while (fill(w->a, filler_size, CHUNK, 1), (n = pwrite(fd, w->a, CHUNK, filler_size)) > 0)
		filler_size += n;
	if (errno != ENOSPC)
		die("filler: %s", strerrorname_np(errno));
	long leave = (long)rnd(w, 1536 * 1024);
	filler_size = filler_size > leave ? filler_size - leave : 0;
	if (ftruncate(fd, filler_size) < 0 || fsync(fd) < 0)
		die("filler: %s", strerrorname_np(errno));
	close(fd);
}

static void check_filler(worker *w)
{
	int fd = open("filler", O_RDONLY);
	for (long off = 0; off < filler_size; off += CHUNK) {
		long n = filler_size - off < CHUNK ? filler_size - off : CHUNK;
		fill(w->b, off, n, 1);
		if (pread(fd, w->a, CHUNK, off) != n || memcmp(w->a, w->b, (size_t)n))
			die("the filler is not what it was at %ld of %ld", off, filler_size);
	}
	close(fd);
}

static void enter(void)
{
	if (chdir(opt.dir) < 0 || (opt.below && ((mkdir(opt.below, 0755) < 0 && errno != EEXIST) || chdir(opt.below) < 0)))
		die("%s: %s", opt.dir, strerrorname_np(errno));
}

static void parse(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "s:n:t:r:p:T:m:y:o:flN:c:x:d:")) != -1;)
		switch (c) {
		case 's': opt.seed = strtoul(optarg, NULL, 0); break;
		case 'n': opt.ops = atol(optarg); break;
		case 't': opt.seconds = atol(optarg); break;
		case 'r': opt.rounds = atoi(optarg); break;
		case 'p': opt.processes = atoi(optarg); break;
		case 'T': opt.threads = atoi(optarg); break;
		case 'm': opt.device = optarg; break;
		case 'y': opt.type = optarg; break;
		case 'o': opt.data = optarg; break;
		case 'f': opt.full = 1; break;
		case 'l': opt.lenient = 1; break;
		case 'N': opt.notes = optarg; break;
		case 'c': opt.control = optarg; break;
		case 'd': opt.below = optarg; break;
		case 'x': opt.without = optarg; break;
		default: _exit(2);
		}
	if (optind != argc - 1 || opt.processes * opt.threads > WORKERS)
		die("usage: fsx [options] DIRECTORY");
	opt.dir = argv[optind];
}

static int succeeded(int rounds)
{
	dprintf(1, "fsx: seed %lu: ok: %lu operations in %d rounds, %lu refused\n", (unsigned long)opt.seed,
		(unsigned long)shared->done, rounds, (unsigned long)shared->refused);
	return 0;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("memory");
	signal(SIGALRM, on_alarm);
	alarm(PATIENCE);
	mkdir(opt.dir, 0755);
	mount_disk();
	enter();
	if (opt.control)
		return succeeded(faults_main());
	prepare();
	if (opt.seconds)
		deadline = now_ms() + opt.seconds * 1000;
	worker w = {.rng = opt.seed * 0x9e3779b97f4a7c15ul};
	if (posix_memalign((void **)&w.a, PAGE, CHUNK) || posix_memalign((void **)&w.b, PAGE, CHUNK))
		die("memory");
	int r;
	for (r = 0; r < opt.rounds && (!deadline || now_ms() < deadline); r++) {
		if (opt.full && r % 2 == 0)
			fill_disk(&w);
		round_of_work();
		if (opt.device && strcmp(opt.type, "ext4") == 0)
			unmount_disk(), mount_disk(), enter();
		else
			drop_caches();
		check_all();
		if (opt.full)
			check_filler(&w);
	}
	unmount_disk();
	return succeeded(r);
}
