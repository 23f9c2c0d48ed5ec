package linux

// Indices of Termios.Cc (include/uapi/asm-generic/termbits.h).
const (
	VINTR    = 0
	VQUIT    = 1
	VERASE   = 2
	VKILL    = 3
	VEOF     = 4
	VTIME    = 5
	VMIN     = 6
	VSWTC    = 7
	VSTART   = 8
	VSTOP    = 9
	VSUSP    = 10
	VEOL     = 11
	VREPRINT = 12
	VDISCARD = 13
	VWERASE  = 14
	VLNEXT   = 15
	VEOL2    = 16
	NCCS     = 19
)

// Input modes.
const (
	IGNBRK  = 0o1
	BRKINT  = 0o2
	IGNPAR  = 0o4
	PARMRK  = 0o10
	INPCK   = 0o20
	ISTRIP  = 0o40
	INLCR   = 0o100
	IGNCR   = 0o200
	ICRNL   = 0o400
	IUCLC   = 0o1000
	IXON    = 0o2000
	IXANY   = 0o4000
	IXOFF   = 0o10000
	IMAXBEL = 0o20000
	IUTF8   = 0o40000
)

// Output modes.
const (
	OPOST  = 0o1
	OLCUC  = 0o2
	ONLCR  = 0o4
	OCRNL  = 0o10
	ONOCR  = 0o20
	ONLRET = 0o40
	TABDLY = 0o14000
	XTABS  = 0o14000
)

// Control modes.
const (
	CBAUD   = 0o10017
	B38400  = 0o17
	CSIZE   = 0o60
	CS8     = 0o60
	CREAD   = 0o200
	HUPCL   = 0o2000
	CLOCAL  = 0o4000
	CBAUDEX = 0o10000
	BOTHER  = 0o10000
	CIBAUD  = 0o2003600000
	B115200 = 0o10002
)

// Local modes.
const (
	ISIG    = 0o1
	ICANON  = 0o2
	XCASE   = 0o4
	ECHO    = 0o10
	ECHOE   = 0o20
	ECHOK   = 0o40
	ECHONL  = 0o100
	NOFLSH  = 0o200
	TOSTOP  = 0o400
	ECHOCTL = 0o1000
	ECHOPRT = 0o2000
	ECHOKE  = 0o4000
	FLUSHO  = 0o10000
	PENDIN  = 0o40000
	IEXTEN  = 0o100000
	EXTPROC = 0o200000
)

// Termios is struct ktermios: struct termios2, of which struct termios is the
// part without speeds.
type Termios struct {
	Iflag, Oflag, Cflag, Lflag uint32
	Line                       uint8
	Cc                         [NCCS]uint8
	Ispeed, Ospeed             uint32
}

// Sizes of structures that terminal ioctls exchange.
const (
	SizeofTermios  = 36
	SizeofTermios2 = 44
	SizeofTermio   = 18
	SizeofWinsize  = 8
)

// Winsize is struct winsize.
type Winsize struct{ Row, Col, Xpixel, Ypixel uint16 }

// Terminal ioctls (include/uapi/asm-generic/ioctls.h). FIONREAD is TIOCINQ.
const (
	TCGETS         = 0x5401
	TCSETS         = 0x5402
	TCSETSW        = 0x5403
	TCSETSF        = 0x5404
	TCGETA         = 0x5405
	TCSETA         = 0x5406
	TCSETAW        = 0x5407
	TCSETAF        = 0x5408
	TCSBRK         = 0x5409
	TCXONC         = 0x540a
	TCFLSH         = 0x540b
	TIOCEXCL       = 0x540c
	TIOCNXCL       = 0x540d
	TIOCSCTTY      = 0x540e
	TIOCGPGRP      = 0x540f
	TIOCSPGRP      = 0x5410
	TIOCOUTQ       = 0x5411
	TIOCSTI        = 0x5412
	TIOCGWINSZ     = 0x5413
	TIOCSWINSZ     = 0x5414
	TIOCMGET       = 0x5415
	TIOCMBIS       = 0x5416
	TIOCMBIC       = 0x5417
	TIOCMSET       = 0x5418
	TIOCGSOFTCAR   = 0x5419
	TIOCSSOFTCAR   = 0x541a
	TIOCPKT        = 0x5420
	TIOCNOTTY      = 0x5422
	TIOCSETD       = 0x5423
	TIOCGETD       = 0x5424
	TCSBRKP        = 0x5425
	TIOCSBRK       = 0x5427
	TIOCCBRK       = 0x5428
	TIOCGSID       = 0x5429
	TIOCGLCKTRMIOS = 0x5456
	TIOCSLCKTRMIOS = 0x5457
	TCGETS2        = 0x802c542a
	TCSETS2        = 0x402c542b
	TCSETSW2       = 0x402c542c
	TCSETSF2       = 0x402c542d
	TIOCGPTN       = 0x80045430
	TIOCSPTLCK     = 0x40045431
	TIOCGDEV       = 0x80045432
	TIOCSIG        = 0x40045436
	TIOCVHANGUP    = 0x5437
	TIOCGPKT       = 0x80045438
	TIOCGPTLCK     = 0x80045439
	TIOCGEXCL      = 0x80045440
	TIOCGPTPEER    = 0x5441
)

// What TCFLSH, TCXONC and packet mode say.
const (
	TCIFLUSH  = 0
	TCOFLUSH  = 1
	TCIOFLUSH = 2

	TCOOFF = 0
	TCOON  = 1
	TCIOFF = 2
	TCION  = 3

	TIOCPKT_DATA       = 0
	TIOCPKT_FLUSHREAD  = 1
	TIOCPKT_FLUSHWRITE = 2
	TIOCPKT_STOP       = 4
	TIOCPKT_START      = 8
	TIOCPKT_NOSTOP     = 16
	TIOCPKT_DOSTOP     = 32
	TIOCPKT_IOCTL      = 64
)

// Major numbers of terminals.
const (
	MEM_MAJOR         = 1
	MISC_MAJOR        = 10
	TTY_MAJOR         = 4
	TTYAUX_MAJOR      = 5
	UNIX98_PTY_MASTER = 128
	UNIX98_PTY_SLAVE  = 136
	TTYS_MINOR        = 64
)
