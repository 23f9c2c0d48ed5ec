# The suites of CPython and of Go: suites.sh MODULE... -- PACKAGE...
# Each Go package has its tests in /suites, and what they read in GOROOT.
. /scripts/lib.sh
export GOROOT=/usr/local/go LANG=C.UTF-8 LC_ALL=C.UTF-8
busybox ip link set lo up
ulimit -c 0
modules=
while [ "$1" != -- ]; do
	modules="$modules $1"
	shift
done
shift
cd /tmp
[ -z "$modules" ] || python3 /scripts/suite.py 240 $modules
for package in "$@"; do
	cd $GOROOT/src/$package
	echo "package $package"
	rc=0
	timeout 900 /suites/$(echo $package | tr / _).test -test.v -test.short 2>&1 || rc=$?
	echo "package ended $rc"
done
