package linux

// Requests of ioctl to block devices (include/uapi/linux/fs.h, hdreg.h).
const (
	HDIO_GETGEO = 0x0301

	BLKROSET         = 0x125d
	BLKROGET         = 0x125e
	BLKRRPART        = 0x125f
	BLKGETSIZE       = 0x1260
	BLKFLSBUF        = 0x1261
	BLKRASET         = 0x1262
	BLKRAGET         = 0x1263
	BLKSSZGET        = 0x1268
	BLKBSZGET        = 0x80081270
	BLKBSZSET        = 0x40081271
	BLKGETSIZE64     = 0x80081272
	BLKDISCARD       = 0x1277
	BLKIOMIN         = 0x1278
	BLKIOOPT         = 0x1279
	BLKALIGNOFF      = 0x127a
	BLKPBSZGET       = 0x127b
	BLKDISCARDZEROES = 0x127c
	BLKROTATIONAL    = 0x127e
	BLKZEROOUT       = 0x127f
)
