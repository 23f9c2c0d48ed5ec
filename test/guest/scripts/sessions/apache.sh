# Apache with TLS: starts, serves, restarts gracefully, stops.
. /scripts/lib.sh
cd /etc/apache2
mkdir -p mods-enabled sites-enabled /var/www/html /var/log/apache2 /run/apache2 /var/lock/apache2 /etc/ssl/private
for mod in mpm_event authz_core dir mime reqtimeout socache_shmcb ssl; do
	for f in mods-available/$mod.load mods-available/$mod.conf; do
		[ ! -e $f ] || ln -sf ../$f mods-enabled/
	done
done
ln -sf ../sites-available/default-ssl.conf ../sites-available/000-default.conf sites-enabled/
echo 'ServerName localhost' >>apache2.conf
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -days 30 \
	-keyout /etc/ssl/private/ssl-cert-snakeoil.key -out /etc/ssl/certs/ssl-cert-snakeoil.pem
echo 'it works' >/var/www/html/index.html

get() { [ "$(curl -s --cacert /etc/ssl/certs/ssl-cert-snakeoil.pem "$1")" = 'it works' ]; }
apachectl start
wait_for get https://localhost/
get http://localhost/
others=
for i in 1 2 3; do
	get https://localhost/ &
	others="$others $!"
done
for pid in $others; do wait $pid; done
old=$(pgrep -P "$(cat /run/apache2/apache2.pid)" | sort)
apachectl graceful
renewed() { [ -z "$(pgrep -P "$(cat /run/apache2/apache2.pid)" | sort | comm -12 - <(echo "$old"))" ]; }
wait_for renewed
wait_for get https://localhost/
apachectl stop
wait_for eval '! pgrep -x apache2'
if grep -E 'emerg|crit|Segmentation' /var/log/apache2/error.log; then exit 1; fi
