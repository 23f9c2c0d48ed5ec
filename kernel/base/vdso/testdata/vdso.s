# The vDSO's code. The bytes in code.go are what GNU as makes of this file; a
# test compares them where as is installed:
#
#	as --64 -o vdso.o vdso.s && objcopy -O binary -j .text vdso.o vdso.bin
#
# The code lies at offset 0x400 of the image, which follows the data page.
# Offsets in the data page are those of type data in data_unsafe.go.

	.set	seq, 0
	.set	useTSC, 4
	.set	tscBase, 8
	.set	mult, 16
	.set	shift, 24
	.set	base, 32
	.set	realOffset, 40
	.set	cpuFrom, 48
	.set	slewAt, 56
	.set	slewRate, 64

	.set	known, 0x0f3		# clocks 0 1 4 5 6 7
	.set	real, 0x021		# of these CLOCK_REALTIME's: 0 5

	.text
text:
	.set	data, text - 0x1400

# int clock_gettime(clockid_t edi, struct timespec *rsi)
	.balign	16
clock_gettime:
	cmpl	$11, %edi
	ja	1f
	movl	$known, %eax
	btl	%edi, %eax
	jnc	1f
	movl	$real, %r10d
	btl	%edi, %r10d
	sbbq	%r10, %r10		# all ones for CLOCK_REALTIME and its kin
	call	now
	jc	1f
	movq	%rax, (%rsi)
	movq	%rdx, 8(%rsi)
	xorl	%eax, %eax
	ret
1:	movl	$228, %eax
	syscall
	ret

# int gettimeofday(struct timeval *rdi, struct timezone *rsi)
	.balign	16
gettimeofday:
	testq	%rdi, %rdi
	jz	2f
	movq	$-1, %r10
	call	now
	jc	3f
	movq	%rax, (%rdi)
	movl	%edx, %eax		# nanoseconds fit 32 bits
	xorl	%edx, %edx
	movl	$1000, %ecx
	divl	%ecx
	movq	%rax, 8(%rdi)
2:	xorl	%eax, %eax
	testq	%rsi, %rsi
	jz	4f
	movq	%rax, (%rsi)		# no time zone
4:	ret
3:	movl	$96, %eax
	syscall
	ret

# time_t time(time_t *rdi)
	.balign	16
time:
	movq	$-1, %r10
	call	now
	jc	6f
	testq	%rdi, %rdi
	jz	5f
	movq	%rax, (%rdi)
5:	ret
6:	movl	$201, %eax
	syscall
	ret

# int clock_getres(clockid_t edi, struct timespec *rsi)
	.balign	16
clock_getres:
	cmpl	$11, %edi
	ja	8f
	movl	$known, %eax
	btl	%edi, %eax
	jnc	8f
	testq	%rsi, %rsi
	jz	7f
	movq	$0, (%rsi)
	movq	$1, 8(%rsi)
7:	xorl	%eax, %eax
	ret
8:	movl	$229, %eax
	syscall
	ret

# int getcpu(unsigned *rdi, unsigned *rsi, void *)
	.balign	16
getcpu:
	movl	data+cpuFrom(%rip), %eax
	subl	$1, %eax
	jb	11f			# 0: ask the kernel
	jnz	9f
	rdtscp				# 1: IA32_TSC_AUX in ecx
	jmp	10f
9:	rdpid	%rcx			# 2
10:	movl	%ecx, %eax		# node<<12 | cpu
	andl	$0xfff, %eax
	shrl	$12, %ecx
	testq	%rdi, %rdi
	jz	12f
	movl	%eax, (%rdi)
12:	xorl	%eax, %eax
	testq	%rsi, %rsi
	jz	13f
	movl	%ecx, (%rsi)
13:	ret
11:	movl	$309, %eax
	syscall
	ret

# now returns seconds in rax and nanoseconds in rdx: of CLOCK_REALTIME if r10 is
# all ones, of CLOCK_MONOTONIC if it is 0. Carry: the TSC cannot be used.
# It changes rcx, r8, r9 and the flags.
	.balign	16
now:
	leaq	data(%rip), %r8
14:	movl	seq(%r8), %r9d
	testl	$1, %r9d
	jnz	17f			# being written
	cmpl	$1, useTSC(%r8)
	jb	18f			# with carry
	ja	19f			# CLOCK_REALTIME has a speed of its own
	lfence
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	subq	tscBase(%r8), %rax
	jnc	15f
	xorl	%eax, %eax		# another CPU's counter lags a little
15:	mulq	mult(%r8)
	movl	shift(%r8), %ecx
	shrdq	%cl, %rdx, %rax
	addq	base(%r8), %rax
	movq	realOffset(%r8), %rcx
	andq	%r10, %rcx
	addq	%rcx, %rax
16:	cmpl	seq(%r8), %r9d
	jne	14b
	xorl	%edx, %edx
	movl	$1000000000, %ecx
	divq	%rcx
	clc
18:	ret
17:	pause
	jmp	14b
19:	lfence
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	subq	tscBase(%r8), %rax
	jnc	20f
	xorl	%eax, %eax
20:	mulq	mult(%r8)
	movl	shift(%r8), %ecx
	shrdq	%cl, %rdx, %rax
	addq	base(%r8), %rax
	testq	%r10, %r10
	jz	16b
	movq	%rax, %rcx
	subq	slewAt(%r8), %rax
	imulq	slewRate(%r8)
	shrdq	$32, %rdx, %rax
	addq	%rcx, %rax
	addq	realOffset(%r8), %rax
	jmp	16b
