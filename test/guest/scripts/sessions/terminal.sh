# expect and script: pseudo-terminals made by others than sshd.
. /scripts/lib.sh
expect <<'X'
set timeout 120
spawn bash --norc
expect_before timeout { exit 1 } eof { exit 2 }
send "PS1='P''> '; tty\r"
expect -re {/dev/pts/[0-9]+}
expect "P> "
# What is typed while the shell edits a line would not end one for read.
send "echo re''ady; read line; echo \"<\$line>\"\r"
expect "ready"
send "words of a line\r"
expect "<words of a line>"
send "exit 3\r"
expect_before
expect eof
exit [expr {[lindex [wait] 3] == 3 ? 0 : 1}]
X
script -qec 'tty; stty size' /tmp/script.log </dev/null
grep -q '^/dev/pts/' /tmp/script.log
rc=0
echo 'echo in a script; exit 3' | script -qec 'bash --norc' /tmp/script.log || rc=$?
[ $rc = 3 ]
grep -q 'in a script' /tmp/script.log
[ "$(echo abc | cat /dev/stdin)" = abc ]
diff <(echo a) <(echo a)
