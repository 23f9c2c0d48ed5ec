package idl

import (
	"bytes"
	"fmt"
	"strings"
)

// cFixed are names, without the prefix, that are not an interface's.
var cFixed = []string{"conn", "handlers", "interface", "connect", "export", "adopt", "close", "user", "raw", "flush"}

// C writes the header and the source. source is the name of the interface file,
// for the first line; the source includes the header as NAME.h.
func C(i *Interface, source string) (header, code []byte, err error) {
	c := &cModule{Interface: i, out: new(bytes.Buffer)}
	if err := c.nameAll(); err != nil {
		return nil, nil, err
	}
	c.header(source)
	header = c.out.Bytes()
	c.out = new(bytes.Buffer)
	c.source(source)
	return header, c.out.Bytes(), nil
}

// CName is what the C files of an interface are called, without the suffix.
func (i *Interface) CName() string { return i.Decl.Name }

func (c *cModule) rpcs() bool {
	for _, m := range c.messages {
		if m.Role == Call {
			return true
		}
	}
	return false
}

// structOf is the struct of a message.
func (c *cModule) structOf(m cMessage) string { return "struct " + c.prefix + m.Name }

func (c *cModule) header(source string) {
	guard := c.macro + "H_"
	c.p("/* "+Header+" */", source)
	c.p("#ifndef %s\n#define %[1]s\n", guard)
	c.p("#include <stdbool.h>\n#include <stdint.h>\n\n#include \"ht_msg.h\"")
	text := c.Decl.Text
	if text == "" {
		text = "no description"
	}
	c.p("")
	c.comment("", fmt.Sprintf("The interface %s: %s.", c.Decl.Name, strings.TrimRight(text, ".")))
	c.comment("", c.Decl.Doc)
	c.p("\nextern const struct ht_interface %sinterface;", c.prefix)
	c.typeDecls()
	if len(c.errors) > 0 {
		c.p("")
		c.comment("", "The errors that calls can end with: the code of a struct ht_error.")
		c.p("enum {")
		for i, name := range c.errors {
			if text := strings.Join(commentLines(c.Errors[i].Text), " "); text != "" {
				c.p("\t%s = %d, /* %s */", name, i+1, text)
			} else {
				c.p("\t%s = %d,", name, i+1)
			}
		}
		c.p("};")
	}
	c.structDecls()
	c.endDecls()
	c.sendDecls()
	c.p("\n#endif")
}

// structDecls declares the messages.
func (c *cModule) structDecls() {
	for _, m := range c.messages {
		what := fmt.Sprintf("The %s %s, number %d.", m.Decl.Key, m.Message.Name(), m.Num)
		switch m.Role {
		case Call:
			what = fmt.Sprintf("What the rpc %s asks; message %d.", m.Message.Name(), m.Num)
		case Reply:
			what = fmt.Sprintf("What the rpc %s answers; message %d.", m.Message.Name(), m.Num)
		}
		if m.Decl.Doc != "" && m.Role != Reply {
			what += "\n\n" + m.Decl.Doc
		}
		c.p("")
		c.comment("", what)
		c.p("%s {", c.structOf(m))
		c.memberDecls(m.fields)
		if len(m.fields) == 0 {
			c.p("\tchar nothing; /* C has no empty structs */")
		}
		c.p("};")
	}
}

// endDecls declares an end of a connection, its handlers, and how to get one.
func (c *cModule) endDecls() {
	p := c.prefix
	c.p("\n/* One end of a connection. */\nstruct %sconn;\n", p)
	c.comment("", "What is called when something arrives. A message, and all that it points to, is\nvalid until its handler returns; descriptors in it are the handler's to close.\nBytes may lie in memory that the peer can change. A message without a handler is\ndropped. A handler may send, and close its own connection.")
	c.p("struct %shandlers {", p)
	for _, m := range c.messages {
		switch m.Role {
		case OneWay:
			c.p("\tvoid (*%s)(struct %sconn *c, const %s *m);", m.handler, p, c.structOf(m))
		case Call:
			c.p("\t/* Answer with %ssend_%s, now or later; call says which it answers. */", p, strings.TrimSuffix(m.Name, "_call")+"_reply")
			c.p("\tvoid (*%s)(struct %sconn *c, uint32_t call, const %s *m);", m.handler, p, c.structOf(m))
		}
	}
	if c.rpcs() {
		c.p("\t/* The peer waits no more for its call, which is better not answered. */")
		c.p("\tvoid (*%s)(struct %sconn *c, uint32_t call);", c.givenUp, p)
	}
	c.p("\t/* There is room again after HT_FULL. */")
	c.p("\tvoid (*room)(struct %sconn *c);", p)
	c.p("\t/* The connection has ended, for the reason ht_strerror tells; c is freed after this. */")
	c.p("\tvoid (*closed)(struct %sconn *c, int reason);\n};\n", p)
	c.p(`/*
 * Connects to the service called name. What arrives is handed to the handlers
 * by ht_dispatch(loop, ...); user is what %[1]suser returns. Returns 0 or an
 * error for ht_strerror.
 */
int %[1]sconnect(struct ht_loop *loop, const char *name, const struct %[1]shandlers *on, void *user,
	struct %[1]sconn **conn);

/*
 * Makes this program reachable as name. accepted is called for each connection,
 * before anything of it arrives, and may be NULL.
 */
int %[1]sexport(struct ht_loop *loop, const char *name, const struct %[1]shandlers *on, void *user,
	void (*accepted)(struct %[1]sconn *c));

/* Takes up an end that was received as a cap. */
int %[1]sadopt(struct ht_loop *loop, struct ht_end *end, const struct %[1]shandlers *on, void *user,
	struct %[1]sconn **conn);

/* The user pointer, which can be set for each connection. */
void **%[1]suser(struct %[1]sconn *c);

/* The connection as the library knows it. */
struct ht_conn *%[1]sraw(struct %[1]sconn *c);

/*
 * Closes this end; what was sent before still arrives. closed is not called; c is
 * freed by the next ht_dispatch or ht_loop_free.
 */
void %[1]sclose(struct %[1]sconn *c);
`, p)
}

// sendDecls declares what sends messages.
func (c *cModule) sendDecls() {
	p := c.prefix
	c.comment("", "Each sends a message; what m points to is copied. They return 0, HT_FULL if the\npeer has not made room yet, or another error for ht_strerror.")
	for _, m := range c.messages {
		switch m.Role {
		case OneWay:
			c.p("int %ssend_%s(struct %[1]sconn *c, const %[3]s *m);", p, m.Name, c.structOf(m))
		case Reply:
			c.p("int %ssend_%s(struct %[1]sconn *c, uint32_t call, const %[3]s *m);", p, m.Name, c.structOf(m))
		}
	}
	if c.rpcs() {
		c.p("")
		c.p("/*\n * Answers a call with an error instead of its reply: one of the interface's, or one of\n * those in ht_msg.h. text may be NULL.\n */")
		c.p("int %s%s(struct %[1]sconn *c, uint32_t call, uint32_t code, const char *text);\n", p, c.fail)
		c.comment("", "Each sends a call and has done called with the reply, or with NULL and the reason:\nHT_CALL_FAILED if the peer answers with an error, for ht_call_error, or why the connection\nhas ended. Any number can be under way. ht_call_cancel gives one up,\nand ht_call_timeout says when.")
		for k, m := range c.messages {
			if m.Role == Call {
				reply := c.messages[k+1]
				c.p("int %ssend_%s(struct %[1]sconn *c, const %[3]s *m,\n\tvoid (*done)(struct %[1]sconn *c, const %[4]s *reply, int reason, void *arg), void *arg);",
					p, m.Name, c.structOf(m), c.structOf(reply))
			}
		}
	}
}

func (c *cModule) source(source string) {
	p := c.prefix
	c.p("/* "+Header+" */", source)
	c.p("#include \"%s.h\"\n\n#include <stdlib.h>\n#include <string.h>\n\n#include \"ht_wire.h\"", c.CName())
	c.p("\nstatic const struct ht_message messages[] = {")
	for _, m := range c.messages {
		role := [...]string{OneWay: "HT_ONE_WAY", Call: "HT_CALL", Reply: "HT_REPLY"}[m.Role]
		c.p("\t{\"%s\", %s, %d, %d, %d},", m.Message.Name(), role, m.Min, m.Max, m.Caps)
	}
	c.p("};\n\nconst struct ht_interface %sinterface = {\n\t\"%s\",\n\t{", p, c.Decl.Name)
	fp := c.Fingerprint()
	for i, b := range fp {
		sep := ", "
		if i%8 == 0 {
			fmt.Fprint(c.out, "\t\t")
		}
		if i%8 == 7 {
			sep = ",\n"
		}
		fmt.Fprintf(c.out, "0x%02x%s", b, sep)
	}
	c.p("\t},\n\tmessages,\n\t%d,\n};", len(c.messages))
	c.p("\nstruct %sconn {\n\tstruct ht_conn *raw;\n\tconst struct %[1]shandlers *on;\n\tvoid *user;\n\tvoid (*accepted)(struct %[1]sconn *c);", p)
	if c.rpcs() {
		c.p("\tstruct ht_calls calls;")
	}
	c.p("\tstruct ht_arena arena;\n};")
	c.codecs()
	for _, m := range c.messages {
		c.messageCodec(m)
	}
	c.deliver()
	c.lifecycle()
	for k, m := range c.messages {
		c.send(k, m)
	}
}

func (m cMessage) plain() bool { return m.Min == m.Max && m.Caps == 0 }

// messageCodec writes the codec of a message; the number of a call is not part
// of it.
func (c *cModule) messageCodec(m cMessage) {
	off := 0
	if m.Role != OneWay {
		off = callBytes
	}
	if m.plain() && m.Max == off {
		return
	}
	st := c.structOf(m)
	c.codec(c.prefix+m.Name, "const "+st, st, m.plain(), m.Min, m.Max, off, m.Caps, m.fields)
}

// deliver writes what the library calls with each message and at the end.
func (c *cModule) deliver() {
	p := c.prefix
	c.p("\nstatic int deliver(void *conn, uint16_t num, const uint8_t *b, size_t n, const struct ht_cap *caps, size_t ncaps)\n{")
	c.p("\tstruct %sconn *c = conn;\n\tswitch (num) {", p)
	for _, m := range c.messages {
		c.deliverCase(m)
		c.p("\t\treturn 0;\n\t}")
	}
	c.p("\t}\n\t(void)c;\n\t(void)b;\n\t(void)n;\n\t(void)caps;\n\t(void)ncaps;\n\treturn HT_BAD_PEER;\n}")
	c.endings()
}

// deliverCase writes how one message is decoded and handed over.
func (c *cModule) deliverCase(m cMessage) {
	p := c.prefix
	c.p("\tcase %d: {", m.Num)
	if m.Min > 4096 { // too much for a stack
		c.p("\t\tht_arena_reset(&c->arena);\n\t\t%s *m = ht_arena_alloc(&c->arena, 1, sizeof(*m));\n\t\tif (m == NULL)\n\t\t\treturn HT_NO_MEMORY;", c.structOf(m))
	} else {
		c.p("\t\t%s room, *m = &room;", c.structOf(m))
	}
	head := 0
	switch m.Role {
	case Call:
		head = callBytes
		c.p("\t\tuint32_t call = ht_get32(b);")
	case Reply:
		head = callBytes
		c.p("\t\tstruct ht_call call;\n\t\tif (!ht_calls_take(&c->calls, ht_get32(b), %d, &call))\n\t\t\treturn ht_late_reply(c->raw, caps, ncaps);", m.Num)
	}
	switch {
	case m.plain() && m.Max == head:
		c.p("\t\tmemset(m, 0, sizeof(*m));")
	case m.plain():
		c.p("\t\tif (!get_%s%s(b, m))\n\t\t\treturn HT_BAD_PEER;", p, m.Name)
	default:
		reset := "\t\tht_arena_reset(&c->arena);\n"
		if m.Min > 4096 {
			reset = ""
		}
		c.p("\t\tstruct ht_reader r = {b + %d, n - %d, caps, ncaps, &c->arena, false};", head, head)
		c.p("%s\t\ttake_%s%s(&r, m);\n\t\tif (!ht_reader_done(&r))\n\t\t\treturn HT_BAD_PEER;", reset, p, m.Name)
	}
	switch m.Role {
	case OneWay:
		c.handle(m, "c->on->"+m.handler, "(c, m)")
	case Call:
		c.handle(m, "c->on->"+m.handler, "(c, call, m)")
	case Reply:
		c.p("\t\tif (call.done != NULL)\n\t\t\t((void (*)(struct %sconn *, const %s *, int, void *))call.done)(c, m, 0, call.arg);", p, c.structOf(m))
		if m.Caps > 0 {
			c.p("\t\telse\n\t\t\tht_caps_close(caps, ncaps);")
		}
	}
}

// endings writes what tells of calls that get no reply, and of the connection's end.
func (c *cModule) endings() {
	p := c.prefix
	if c.rpcs() {
		c.p("\n/* Tells who waits for a call that there will be no reply. */")
		c.p("static void unanswered(struct %sconn *c, const struct ht_call *call, int reason)\n{\n\tif (call->done == NULL)\n\t\treturn;\n\tswitch (call->num) {", p)
		for _, m := range c.messages {
			if m.Role == Reply {
				c.p("\tcase %d:\n\t\t((void (*)(struct %sconn *, const %s *, int, void *))call->done)(c, NULL, reason, call->arg);\n\t\tbreak;", m.Num, p, c.structOf(m))
			}
		}
		c.p(`	}
}

static void failed(void *conn, uint32_t number)
{
	struct %[1]sconn *c = conn;
	struct ht_call call;
	if (ht_calls_take_id(&c->calls, number, &call))
		unanswered(c, &call, HT_CALL_FAILED);
}

static void given_up(void *conn, uint32_t number)
{
	struct %[1]sconn *c = conn;
	if (c->on->%[2]s != NULL)
		c->on->%[2]s(c, number);
}`, p, c.givenUp)
	}
	c.p("\nstatic void destroy(struct %sconn *c, int reason)\n{", p)
	if c.rpcs() {
		c.p("\tstruct ht_call call;\n\twhile (ht_calls_any(&c->calls, &call))\n\t\tunanswered(c, &call, reason);\n\tht_calls_free(&c->calls);")
	}
	c.p("\t(void)reason;\n\tht_arena_free(&c->arena);\n\tfree(c);\n}")
	c.p(`
static void room(void *conn)
{
	struct %[1]sconn *c = conn;
	if (c->on->room != NULL)
		c->on->room(c);
}

static void closed(void *conn, int reason)
{
	struct %[1]sconn *c = conn;
	if (reason != HT_CLOSED_HERE && c->on->closed != NULL)
		c->on->closed(c, reason);
	destroy(c, reason);
}`, p)
}

// handle calls a handler if there is one.
func (c *cModule) handle(m cMessage, fn, args string) {
	c.p("\t\tif (%s != NULL)\n\t\t\t%[1]s%s;", fn, args)
	if m.Caps > 0 {
		c.p("\t\telse\n\t\t\tht_caps_close(caps, ncaps);")
	}
}

// lifecycleText makes connections and ends them: the prefix, and more events.
const lifecycleText = `
static const struct ht_events events = {.deliver = deliver, .room = room, .closed = closed%[2]s};

static struct %[1]sconn *make(const struct %[1]shandlers *on, void *user)
{
	struct %[1]sconn *c = calloc(1, sizeof(*c));
	if (c != NULL) {
		c->on = on;
		c->user = user;
	}
	return c;
}

int %[1]sconnect(struct ht_loop *loop, const char *name, const struct %[1]shandlers *on, void *user,
	struct %[1]sconn **conn)
{
	struct %[1]sconn *c = make(on, user);
	if (c == NULL)
		return HT_NO_MEMORY;
	int err = ht_connect(loop, name, &%[1]sinterface, &events, c, &c->raw);
	if (err != 0) {
		free(c);
		return err;
	}
	*conn = c;
	return 0;
}

struct exported {
	const struct %[1]shandlers *on;
	void *user;
	void (*accepted)(struct %[1]sconn *c);
};

/* The library asks for what goes with a new connection. */
static void *accept_one(void *arg, struct ht_conn *raw)
{
	struct exported *e = arg;
	struct %[1]sconn *c = make(e->on, e->user);
	if (c != NULL) {
		c->raw = raw;
		if (e->accepted != NULL)
			e->accepted(c);
	}
	return c;
}

int %[1]sexport(struct ht_loop *loop, const char *name, const struct %[1]shandlers *on, void *user,
	void (*accepted)(struct %[1]sconn *c))
{
	struct exported *e = malloc(sizeof(*e));
	if (e == NULL)
		return HT_NO_MEMORY;
	e->on = on;
	e->user = user;
	e->accepted = accepted;
	int err = ht_export(loop, name, &%[1]sinterface, &events, accept_one, e, free);
	if (err != 0)
		free(e);
	return err;
}

int %[1]sadopt(struct ht_loop *loop, struct ht_end *end, const struct %[1]shandlers *on, void *user,
	struct %[1]sconn **conn)
{
	struct %[1]sconn *c = make(on, user);
	if (c == NULL)
		return HT_NO_MEMORY;
	int err = ht_adopt(loop, end, &%[1]sinterface, &events, c, &c->raw);
	if (err != 0) {
		free(c);
		return err;
	}
	*conn = c;
	return 0;
}

void **%[1]suser(struct %[1]sconn *c) { return &c->user; }

struct ht_conn *%[1]sraw(struct %[1]sconn *c) { return c->raw; }

void %[1]sclose(struct %[1]sconn *c) { ht_close(c->raw); }`

func (c *cModule) lifecycle() {
	more := ""
	if c.rpcs() {
		more = ", .failed = failed, .given_up = given_up"
	}
	c.p(lifecycleText, c.prefix, more)
	if c.rpcs() {
		c.p(`
int %[1]s%[2]s(struct %[1]sconn *c, uint32_t call, uint32_t code, const char *text)
{
	return ht_reply_error(c->raw, call, code, text);
}`, c.prefix, c.fail)
	}
}

// send writes the function that sends m.
func (c *cModule) send(k int, m cMessage) {
	p, st := c.prefix, c.structOf(m)
	head := 0
	switch m.Role {
	case Call:
		head = callBytes
		c.p("\nint %ssend_%s(struct %[1]sconn *c, const %[3]s *m,\n\tvoid (*done)(struct %[1]sconn *c, const %[4]s *reply, int reason, void *arg), void *arg)\n{", p, m.Name, st, c.structOf(c.messages[k+1]))
	case Reply:
		head = callBytes
		c.p("\nint %ssend_%s(struct %[1]sconn *c, uint32_t call, const %[3]s *m)\n{", p, m.Name, st)
	default:
		c.p("\nint %ssend_%s(struct %[1]sconn *c, const %[3]s *m)\n{", p, m.Name, st)
	}
	size := fmt.Sprint(m.Max)
	ret := func(err string) string {
		if m.Role == Reply {
			return "ht_replied(c->raw, call, " + err + ")"
		}
		return err
	}
	if m.Min != m.Max {
		c.p("\tsize_t n = size_%s%s(m);\n\tif (n == 0)\n\t\treturn %s;", p, m.Name, ret("HT_TOO_LARGE"))
		size = "n"
	}
	if m.Role == Call {
		c.p("\tuint32_t call;\n\tint full = ht_calls_add(&c->calls, %d, (void (*)(void))done, arg, &call);\n\tif (full != 0)\n\t\treturn full;", m.Num+1)
	}
	c.p("\tuint8_t *b;\n\tint err = ht_begin(c->raw, %s, &b);\n\tif (err != 0)", size)
	if m.Role == Call {
		c.p("\t\tgoto failed;")
	} else {
		c.p("\t\treturn %s;", ret("err"))
	}
	if head > 0 {
		c.p("\tht_put32(b, call);")
	}
	list := "NULL, 0"
	switch {
	case m.plain() && m.Max == head:
		c.p("\t(void)m;")
	case m.plain():
		c.p("\tput_%s%s(b, m);", p, m.Name)
	case m.Caps > 0:
		c.p("\tstruct ht_cap caps[%d], *next = caps;\n\tappend_%s%s(b + %d, m, &next);", m.Caps, p, m.Name, head)
		list = fmt.Sprintf("caps, %d", m.Caps)
	default:
		c.p("\tappend_%s%s(b + %d, m);", p, m.Name, head)
	}
	if m.Role != Call {
		c.p("\treturn %s;\n}", ret(fmt.Sprintf("ht_commit(c->raw, %d, %s)", m.Num, list)))
		return
	}
	c.p("\terr = ht_commit(c->raw, %d, %s);\n\tif (err == 0) {\n\t\tht_called(c->raw, &c->calls, call);\n\t\treturn 0;\n\t}\nfailed:\n\tht_calls_drop(&c->calls, call);\n\treturn err;\n}", m.Num, list)
}
