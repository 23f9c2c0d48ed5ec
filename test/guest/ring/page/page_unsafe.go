package page

import "unsafe"

// WordsOf returns a page's words.
func WordsOf(page []byte) *Words {
	return (*Words)(unsafe.Pointer(&page[wordsAt:Size:Size][0]))
}
