// Limits of time inside the nucleus: never early, none forgotten, whatever others wait
// for. Late they may be as much as this machine is slow; a test that forgets one hangs.
#include "check.h"

static const long minute = 60000, hour = 60 * 60000;

// over checks a call that had to end by its limit.
static long over(long rc, uint64_t until)
{
	uint64_t now = in(0);
	is(rc, -ETIMEDOUT);
	is(now >= until, 1);
	return (long)((now - until) / 1000);
}

// known makes the nucleus remember what the descriptors are: the first call with one
// goes another way.
static void known(endpoint e, int note)
{
	struct ht_message m = word(1);
	uint64_t bits;
	for (int i = 0; i < 2; i++) {
		is(ht_ipc_send(e.send, &m, NOW), -EAGAIN);
		is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN);
		is(ht_ipc_wait(note, &bits, NOW), -EAGAIN);
	}
}

TEST(each, "each call, with a limit in the future, now, long ago")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0));
	known(e, note);
	long ahead[] = {30, 1, 0, -1};
	int other = (int)good(ht_ipc_notification(0));
	long late = 0;
	for (int i = 0; i < 6 * 4; i++) {
		uint64_t until = ahead[i / 6] < 0 ? 1 : in(ahead[i / 6]), bits; // 1: when the machine began
		struct ht_message m = word(1);
		m.token = 0;
		long rc = 0;
		switch (i % 6) {
		case 0: rc = ht_ipc_send(e.send, &m, until); break;
		case 1: rc = ht_ipc_call(e.send, &m, until); break;
		case 2: rc = ht_ipc_recv(e.recv, &m, until); break;
		case 3: rc = ht_ipc_reply_recv(e.recv, &m, until); break;
		case 4: rc = ht_ipc_wait(note, &bits, until); break;
		case 5: rc = ht_ipc_signal_wait(other, 1, note, &bits, until); break;
		}
		long by = over(rc, until);
		late = ahead[i / 6] >= 0 && by > late ? by : late;
	}
	say("late by %ld us at most", late);
	// What had a limit and is over may wait without one, and longer.
	uint64_t bits;
	pid_t signaller = FORK(sleep_ms(60); good(ht_ipc_signal(note, 5)));
	good(ht_ipc_wait(note, &bits, FOREVER));
	is(bits, 5);
	ended(signaller);
	// Limits that are hardly limits.
	uint64_t far[] = {~0ul - 1, 1ul << 63, (1ul << 63) - 1, 1ul << 62};
	for (int i = 0; i < 4; i++) {
		signaller = FORK(sleep_ms(5); good(ht_ipc_signal(note, 6)));
		good(ht_ipc_wait(note, &bits, far[i]));
		is(bits, 6);
		ended(signaller);
	}
}

TEST(replies, "a call that is received in time and answered too late")
{
	endpoint e = new_endpoint();
	int over_now = (int)good(ht_ipc_notification(0));
	known(e, over_now);
	pid_t server = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		for (;;) {
			uint64_t bits;
			if (m.words[0] % 4 == 3)
				good(ht_ipc_wait(over_now, &bits, FOREVER));
			m.words[0]++;
			good(ht_ipc_reply_recv(e.recv, &m, in(hour)));
		}
	});
	for (uint64_t i = 0; i < 40; i++) {
		struct ht_message m = word(i);
		uint64_t until = in(i % 4 == 3 ? 10 : hour);
		long rc = ht_ipc_call(e.send, &m, until);
		if (i % 4 == 3) {
			over(rc, until);
			good(ht_ipc_signal(over_now, 1));
		} else {
			good(rc);
			is(m.words[0], i + 1);
		}
	}
	end(server);
}

TEST(order, "a short limit while long ones are waited for")
{
	int note = (int)good(ht_ipc_notification(0)), other = (int)good(ht_ipc_notification(0));
	pid_t patient[4];
	for (int i = 0; i < 4; i++)
		patient[i] = FORK({
			uint64_t bits;
			is(ht_ipc_wait(note, &bits, NOW), -EAGAIN);
			good(ht_ipc_wait(note, &bits, in(hour - i * minute)));
		});
	for (int i = 0; i < 4; i++)
		settle(patient[i]);
	for (int ms = 50; ms > 0; ms -= 10) {
		uint64_t until = in(ms), bits;
		over(ht_ipc_wait(other, &bits, until), until);
	}
	for (int i = 0; i < 4; i++)
		good(ht_ipc_signal(note, 1));
	for (int i = 0; i < 4; i++)
		ended(patient[i]);
}

TEST(always, "a limit with each of many calls, both sides")
{
	endpoint e = new_endpoint();
	pid_t server = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, in(hour)));
		for (;;) {
			m.words[0]++;
			good(ht_ipc_reply_recv(e.recv, &m, in(hour)));
		}
	});
	for (uint64_t i = 0; i < 20000; i++) {
		struct ht_message m = word(i);
		good(ht_ipc_call(e.send, &m, in(hour - (long)(i % 7) * 1000))); // now later, now earlier
		is(m.words[0], i + 1);
	}
	end(server);
}

enum { stormers = 16 };
static endpoint meeting;
static int bell;
static volatile long passed, met, lateness;

// limited makes calls with short limits, so that at any time one of them is over.
static void *limited(void *arg)
{
	uint64_t s = (uint64_t)(long)arg * 77 + 1;
	long most = 0;
	for (int i = 0; i < 150; i++) {
		s ^= s << 13, s ^= s >> 7, s ^= s << 17;
		uint64_t until = in(0) + s % 3000000, bits;
		struct ht_message m = word(s);
		long rc = 0;
		switch (s >> 40 & 7) {
		case 0: case 1: rc = ht_ipc_wait(bell, &bits, until); break;
		case 2: rc = ht_ipc_signal(bell, 1); break;
		case 3: rc = ht_ipc_send(meeting.send, &m, until); break;
		case 4: case 5: rc = ht_ipc_call(meeting.send, &m, until); break;
		case 6: rc = ht_ipc_recv(meeting.recv, &m, until); break;
		case 7: m.token = 0, rc = ht_ipc_reply_recv(meeting.recv, &m, until); break;
		}
		if (rc < 0 && rc != -EPIPE) { // who had received the call may have ended
			long late = over(rc, until);
			most = late > most ? late : most;
			__atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
		} else {
			__atomic_fetch_add(&met, 1, __ATOMIC_RELAXED);
		}
	}
	for (long was = lateness; was < most && !__atomic_compare_exchange_n(&lateness, &was, most, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);)
		;
	return NULL;
}

TEST(storm_of_limits, "a storm of short limits")
{
	meeting = new_endpoint();
	bell = (int)good(ht_ipc_notification(0));
	pthread_t t[stormers];
	for (long i = 0; i < stormers; i++)
		is(pthread_create(&t[i], NULL, limited, (void *)i), 0);
	for (int i = 0; i < stormers; i++)
		pthread_join(t[i], NULL);
	say("%ld limits were over, %ld calls met somebody; late by %ld us at most", passed, met, lateness);
	is(passed > 0 && met > 0, 1);
}
