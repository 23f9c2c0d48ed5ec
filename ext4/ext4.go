// Package ext4 is Linux's ext4 file system, as mke2fs 1.47 makes it, with a journal
// (jbd2, ordered mode) that makes every operation atomic with respect to crashes. Mkfs
// makes such disks, Check examines them.
//
// It does not depend on the kernel: a disk is a BlockDevice, an open file an *Inode, a
// transfer a slice of bytes. File data is not cached here: ReadAt and WriteAt go to the
// disk, and a page cache on top fills its pages by ReadPages and empties them by
// WritePages, with space set aside by Reserve when a page becomes dirty (delayed
// allocation).
//
// # Transactions
//
// What changes metadata runs in a handle (journal.go), which belongs to the one open
// transaction. A handle states beforehand how many blocks it may change at most (its
// credits: each constant ending in Credits says why) and how many it may allocate (a
// promise, taken from the free blocks before it begins). So it never fails half way for
// lack of space, in the log or on the disk. Long work (truncating a large file) is many
// handles, with a consistent tree after each and an entry in the orphan list, which the
// next mount finishes.
//
// A commit closes the transaction, waits for its handles, stores the checksums of what
// they changed (seal.go), takes the current bytes of its blocks, and lets the next
// transaction begin at once. To change one of these blocks after that, it is copied first
// (buffer.shared). A caller that needs durability commits itself. Callers that come
// meanwhile find their changes in the next transaction, which one of them commits for
// all. So fsyncs share commits without a thread or a delay. The order on disk:
//
//	data, in blocks that nothing on disk leads to yet
//	log: revoke blocks, descriptors, blocks
//	flush
//	commit block, forced (FUA)
//	...
//	blocks go home, flush, the log's super block is moved on (checkpoint)
//
// Invariants:
//
//   - New data is on its blocks before a handle links them to a file. So a commit
//     never waits for data, and no crash shows a file with blocks of another.
//   - A block that was freed is not allocated again before the transaction that freed
//     it is durable; and if it was metadata, a revoke record keeps older copies in the
//     log from being replayed over it. (group.busy, handle.forget)
//   - The block in which a file that was cut now ends is written again, to another
//     place. So the old content is there until the cut is durable, and what lies
//     beyond the end is zeros, on which Linux relies.
//   - The disk says that its log must be replayed before anything else is in the log.
//   - Blocks that a checkpoint may just be writing are not given to anybody else, though
//     the transaction that freed them is durable. (journal.held)
//   - Bytes that come from the disk are checked before they are followed, by checksum
//     and in structure, once for each time a block is read and for each owner it is
//     said to have (buffer.kind, of); what ties a block to the one that leads to it is
//     looked at each time. A block of metadata has one owner and one kind while it is in
//     memory, and what is at fixed places (zone) belongs to no file: so content that
//     one file has checked is never changed by another.
//   - Damage found during a change ends the journal: the file system becomes read-only,
//     the open transaction never reaches the disk, and the log's super block asks for
//     fsck.
//
// # Locks, in the order in which they are taken
//
//	FS.renameMu          whoever locks more than one directory: so on a damaged disk, whose
//	                     directories may be in each other, nobody waits in a circle
//	Inode.mu             directories from the root down, then what they hold, by number
//	journal.homeMu       whoever checkpoints
//	journal.commitMu     whoever commits
//	(a handle)           waits for journal.mu only; no Inode.mu is taken inside. (One that
//	                     has ended the journal takes homeMu: nobody waits for it then.)
//	FS.orphanMu
//	FS.aheadMu, window.mu
//	buffer.mu            bitmap before descriptor
//	group.mu, FS.inodesMu
//	journal.mu
//	cache.mu             never held while waiting for a buffer; readers do without
//
// The bytes of a block that one file owns are guarded by the file's Inode.mu, those of
// shared blocks (inode tables, bitmaps, descriptors, the super block) by buffer.mu.
//
// # Limits
//
// Files with ext2's indirect blocks are read, not written. A transaction takes at most
// a quarter of the log. Access times are the caller's to set. Not supported, and
// refused with their names: bigalloc, casefold, compression, ea_inode, encrypt,
// fast_commit, inline_data, meta_bg, mmp, an external journal; quota, project and
// verity are only read.
//
// Sources: Documentation/filesystems/ext4 and jbd2's format in Linux's documentation,
// e2fsprogs' behaviour; the grouping of operations into transactions is Biscuit's.
package ext4
