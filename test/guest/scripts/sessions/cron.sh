# A job of the system and one of a user, by cron as it is installed: through PAM.
. /scripts/lib.sh
echo '* * * * * root (date; cat /proc/self/loginuid) >/tmp/cron.system' >/etc/cron.d/test
chmod 644 /etc/cron.d/test
echo '* * * * * id -un >/tmp/cron.user' | crontab -u joe -
crontab -u joe -l | grep -q cron.user
cron
wait_for test -s /tmp/cron.system -a -s /tmp/cron.user
grep -qx joe /tmp/cron.user
