# In folders of the host: a clone, a commit and collection by git, and with the argument go a
# build. The clone and the build's cache are in /srv, the cloned repository and Go are
# read-only.
. /scripts/lib.sh
export HOME=/tmp PATH=/usr/local/go/bin:/bin:/usr/bin
export GOCACHE=/srv/cache GOTMPDIR=/srv GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=0
git config --global user.name who
git config --global user.email who@example.org
git config --global --add safe.directory '*'
cd /srv
git clone -q --no-local /repo copy
cd copy
git fsck --full --strict
[ -z "$(git status --short)" ]
echo change >>d1/f1
git commit -qam changed
git gc -q
git fsck --full --strict
diff -r --exclude=.git --exclude=f1 /repo .
echo "git: $(git rev-list --count HEAD) commits"
[ "$1" = go ] || exit 0
cd ../hello
go build -o hello .
./hello
