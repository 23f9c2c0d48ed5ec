package linux

// Requests of a namespace's file (include/uapi/linux/nsfs.h).
const (
	NS_GET_USERNS    = 0xb701
	NS_GET_PARENT    = 0xb702
	NS_GET_NSTYPE    = 0xb703
	NS_GET_OWNER_UID = 0xb704
)
