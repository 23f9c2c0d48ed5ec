# cp -a of the root, compared by bytes and attributes.
. /scripts/lib.sh
mkdir /copy
cp -a /usr /etc /copy/
diff -r --no-dereference /usr /copy/usr
diff -r --no-dereference /etc /copy/etc
for tree in usr etc; do
	(cd / && find $tree -printf '%p %y %m %U %G %n %l' ! -type d -printf ' %s %T@' -printf '\n' | sort) >/tmp/a
	(cd /copy && find $tree -printf '%p %y %m %U %G %n %l' ! -type d -printf ' %s %T@' -printf '\n' | sort) >/tmp/b
	cmp /tmp/a /tmp/b
	(cd / && find $tree -type d -printf '%p %T@\n' | sort) >/tmp/a
	(cd /copy && find $tree -type d -printf '%p %T@\n' | sort) >/tmp/b
	cmp /tmp/a /tmp/b
done
rm -r /copy/etc
sync
echo "copy: the same"
