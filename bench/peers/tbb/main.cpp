// The same programs on oneTBB.
//
//   tbb fib|stress|sort N WORKERS REPS    prints nanoseconds, a line each
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <vector>

static long fib(int n) {
	if (n < 2)
		return n;
	long x, y;
	tbb::parallel_invoke([&] { x = fib(n - 1); }, [&] { y = fib(n - 2); });
	return x + y;
}

static void stress(int n) {
	if (n == 0)
		return;
	tbb::parallel_invoke([=] { stress(n - 1); }, [=] { stress(n - 1); });
}

// The merge sort of the task library: from x to itself, or to buf if over.
static void insertion(int32_t *x, size_t n) {
	for (size_t i = 1; i < n; i++) {
		int32_t v = x[i];
		size_t j = i;
		for (; j > 0 && v < x[j - 1]; j--)
			x[j] = x[j - 1];
		x[j] = v;
	}
}

// The 19 exchanges of Batcher's odd-even merge sort of eight.
static void network(int32_t *x) {
	int32_t v[8];
	std::copy(x, x + 8, v);
	auto sort2 = [&v](int i, int j) {
		int32_t lo = std::min(v[i], v[j]), hi = std::max(v[i], v[j]);
		v[i] = lo, v[j] = hi;
	};
	sort2(0, 1), sort2(2, 3), sort2(4, 5), sort2(6, 7);
	sort2(0, 2), sort2(1, 3), sort2(4, 6), sort2(5, 7);
	sort2(1, 2), sort2(5, 6);
	sort2(0, 4), sort2(1, 5), sort2(2, 6), sort2(3, 7);
	sort2(2, 4), sort2(3, 5);
	sort2(1, 2), sort2(3, 4), sort2(5, 6);
	std::copy(v, v + 8, x);
}

static void merge_run(const int32_t *a, size_t na, const int32_t *b, size_t nb, int32_t *to) {
	while (size_t h = std::min(na, nb) / 2) {
		size_t i = 0, j = 0, p = na - 1, q = nb - 1, end = na + nb - 1;
		for (size_t k = 0; k < h; k++) {
			bool l = b[j] < a[i];
			to[k] = l ? b[j] : a[i];
			j += l;
			i += !l;
			l = b[q] < a[p];
			to[end - k] = l ? a[p] : b[q];
			p -= l;
			q -= !l;
		}
		a += i, b += j, to += h;
		na = p + 1 - i, nb = q + 1 - j;
	}
	while (na && nb) {
		if (*b < *a)
			*to++ = *b++, nb--;
		else
			*to++ = *a++, na--;
	}
	std::copy(a, a + na, to);
	std::copy(b, b + nb, to + na);
}

static void sort_run(int32_t *x, int32_t *buf, size_t n, bool over) {
	int passes = 0;
	for (size_t w = 8; w < n; w *= 2)
		passes++;
	int32_t *src = x, *dst = buf;
	if (over == (passes % 2 == 0)) {
		std::copy(x, x + n, buf);
		std::swap(src, dst);
	}
	for (size_t lo = 0; lo < n; lo += 8)
		if (n - lo >= 8)
			network(src + lo);
		else
			insertion(src + lo, n - lo);
	for (size_t w = 8; w < n; w *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * w) {
			size_t mid = std::min(lo + w, n), hi = std::min(lo + 2 * w, n);
			merge_run(src + lo, mid - lo, src + mid, hi - mid, dst + lo);
		}
		std::swap(src, dst);
	}
}

static void merge_to(const int32_t *a, size_t na, const int32_t *b, size_t nb, int32_t *to) {
	if (na + nb <= 1 << 14)
		return merge_run(a, na, b, nb, to);
	size_t i, j;
	if (na >= nb) {
		i = na / 2;
		j = std::lower_bound(b, b + nb, a[i]) - b;
	} else {
		j = nb / 2;
		i = std::upper_bound(a, a + na, b[j]) - a;
	}
	tbb::parallel_invoke([=] { merge_to(a + i, na - i, b + j, nb - j, to + i + j); }, [=] { merge_to(a, i, b, j, to); });
}

static void sort_to(int32_t *x, int32_t *buf, size_t n, bool over) {
	if (n <= 4096)
		return sort_run(x, buf, n, over);
	size_t m = n / 2;
	tbb::parallel_invoke([=] { sort_to(x, buf, m, !over); }, [=] { sort_to(x + m, buf + m, n - m, !over); });
	if (over)
		merge_to(x, m, x + m, n - m, buf);
	else
		merge_to(buf, m, buf + m, n - m, x);
}

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: tbb fib|stress|sort N WORKERS REPS\n");
		return 2;
	}
	int n = atoi(argv[2]), w = atoi(argv[3]), reps = atoi(argv[4]);
	tbb::global_control g(tbb::global_control::max_allowed_parallelism, w);
	tbb::task_arena arena(w);
	bool sorting = !strcmp(argv[1], "sort");
	std::vector<int32_t> x(sorting ? n : 0);
	for (int r = 0; r < reps; r++) {
		uint64_t s = 88172645463325252;
		for (auto &v : x) {
			s ^= s << 13, s ^= s >> 7, s ^= s << 17;
			v = (int32_t)s;
		}
		auto t = std::chrono::steady_clock::now();
		arena.execute([&] {
			if (sorting) {
				std::unique_ptr<int32_t[]> buf(new int32_t[x.size()]);
				sort_to(x.data(), buf.get(), x.size(), false);
			} else if (!strcmp(argv[1], "fib"))
				fib(n);
			else
				stress(n);
		});
		auto d = std::chrono::steady_clock::now() - t;
		if (!std::is_sorted(x.begin(), x.end()))
			return 1;
		printf("%lld\n", (long long)std::chrono::nanoseconds(d).count());
	}
}
