"""Runs CPython's own tests, each module in a process of its own, and tells how each
test ended, as "R<TAB>outcome<TAB>name<TAB>why". A test that takes too long is killed,
which is told, too, and the module goes on without it.

    suite.py SECONDS MODULE...
"""
import os
import select
import signal
import subprocess
import sys
import time
import unittest


class Teller(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def startTest(self, test):
        super().startTest(test)
        self.out.write("S\t%s\n" % test.id())

    def tell(self, outcome, test, why=""):
        why = why.replace("\n", "|").replace("\t", " ")[-1500:]
        self.out.write("R\t%s\t%s\t%s\n" % (outcome, test.id(), why))

    def addSuccess(self, test):
        self.tell("ok", test)

    def addExpectedFailure(self, test, err):
        self.tell("ok", test)

    def addSkip(self, test, why):
        self.tell("skip", test, why)

    def addError(self, test, err):
        self.tell("error", test, self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self.tell("failure", test, self._exc_info_to_string(err, test))

    def addUnexpectedSuccess(self, test):
        self.tell("failure", test, "unexpected success")

    def addSubTest(self, test, sub, err):
        if err:
            self.tell("failure", test, str(sub) + self._exc_info_to_string(err, test))


def without(suite, names):
    """The suite without tests of these names."""
    new = type(suite)()
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            new.addTest(without(t, names))
        elif t.id() not in names:
            new.addTest(t)
    return new


def child(module, skip, fd):
    """Runs a module's tests, but for those to skip, and tells fd."""
    from test import support
    support.verbose = 0
    # Servers on loopback need the network, too; nothing else of it is there.
    support.use_resources = ["network"] if module == "test_socketserver" else []
    out = os.fdopen(fd, "w", buffering=1)
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName("test." + module)
        without(suite, skip).run(Teller(out))
    except unittest.SkipTest as e:
        out.write("R\tskip\t%s\t%s\n" % (module, e))
    out.write("E\n")
    out.flush()
    os._exit(0)


def run(module, limit):
    seen = set()
    for _ in range(12):
        r, w = os.pipe()
        d = "/tmp/suite.%d" % os.getpid()
        os.makedirs(d, exist_ok=True)
        p = subprocess.Popen([sys.executable, __file__, "--child", str(w), module, *seen], pass_fds=[w], cwd=d,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(w)
        rest, current, ended, last = b"", None, False, time.monotonic()
        while not ended and time.monotonic() - last < limit:
            if not select.select([r], [], [], 1)[0]:
                if p.poll() is not None:
                    break  # what it left behind may hold the pipe
                continue
            data = os.read(r, 65536)
            if not data:
                break
            last = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                line = line.decode(errors="replace")
                if line[0] == "S":
                    current = line[2:]
                    seen.add(current)
                elif line[0] == "E":
                    ended = True
                else:
                    seen.add(line.split("\t")[2])
                    print(line, flush=True)
        os.close(r)
        hung = p.poll() is None
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except OSError:
            pass
        status = p.wait()
        if ended:
            return
        print("R\t%s\t%s\t" % ("hangs" if hung else "dies %d" % status, current or module), flush=True)
        if current is None:
            return


# Tests of multiprocessing import the program anew.
if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[3], set(sys.argv[4:]), int(sys.argv[2]))
    else:
        for m in sys.argv[2:]:
            run(m, float(sys.argv[1]))
