# git: commits, branches, a merge, a clone, collection and check.
. /scripts/lib.sh
cd /root
git config --global user.email who@example.org
git config --global user.name who
git config --global init.defaultBranch main
git init -q repo
cd repo
for i in $(seq 12); do
	mkdir -p d$((i % 4))
	seq $i $((i + 300)) >d$((i % 4))/f$i
	git add .
	git commit -qm "number $i"
done
git checkout -q -b side HEAD~4
echo side >side
git add side
git commit -qm side
git checkout -q main
git merge -q -m merged side
git gc -q
git fsck --full --strict
cd ..
git clone -q --no-local repo copy
cd copy
git fsck --full --strict
[ "$(git log --format=%H | md5sum)" = "$(cd ../repo && git log --format=%H | md5sum)" ]
[ -z "$(git status --short)" ]
diff -r --exclude=.git ../repo .
echo "git: $(git rev-list --count HEAD) commits"
