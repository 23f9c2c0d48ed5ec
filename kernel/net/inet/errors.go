package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
)

// errno translates netstack's errors.
func errno(err tcpip.Error) linux.Errno {
	switch err.(type) {
	case nil:
		return 0
	case *tcpip.ErrAborted, *tcpip.ErrClosedForSend:
		return linux.EPIPE
	case *tcpip.ErrAddressFamilyNotSupported:
		return linux.EAFNOSUPPORT
	case *tcpip.ErrAlreadyBound, *tcpip.ErrInvalidEndpointState, *tcpip.ErrInvalidOptionValue,
		*tcpip.ErrInvalidPortRange, *tcpip.ErrMalformedHeader, *tcpip.ErrMissingRequiredFields:
		return linux.EINVAL
	case *tcpip.ErrAlreadyConnected:
		return linux.EISCONN
	case *tcpip.ErrAlreadyConnecting:
		return linux.EALREADY
	case *tcpip.ErrBadAddress, *tcpip.ErrBadBuffer:
		return linux.EFAULT
	case *tcpip.ErrBadLocalAddress, *tcpip.ErrNoPortAvailable:
		return linux.EADDRNOTAVAIL
	case *tcpip.ErrBroadcastDisabled:
		return linux.EACCES
	case *tcpip.ErrConnectStarted:
		return linux.EINPROGRESS
	case *tcpip.ErrConnectionAborted:
		return linux.ECONNABORTED
	case *tcpip.ErrConnectionRefused:
		return linux.ECONNREFUSED
	case *tcpip.ErrConnectionReset:
		return linux.ECONNRESET
	case *tcpip.ErrDestinationRequired:
		return linux.EDESTADDRREQ
	case *tcpip.ErrDuplicateAddress, *tcpip.ErrDuplicateNICID:
		return linux.EEXIST
	case *tcpip.ErrInvalidNICID, *tcpip.ErrUnknownDevice, *tcpip.ErrUnknownNICID:
		return linux.ENODEV
	case *tcpip.ErrMessageTooLong:
		return linux.EMSGSIZE
	case *tcpip.ErrNetworkUnreachable:
		return linux.ENETUNREACH
	case *tcpip.ErrNoBufferSpace:
		return linux.ENOBUFS
	case *tcpip.ErrHostUnreachable:
		return linux.EHOSTUNREACH
	case *tcpip.ErrHostDown:
		return linux.EHOSTDOWN
	case *tcpip.ErrNoNet:
		return linux.ENONET
	case *tcpip.ErrNoSuchFile:
		return linux.ENOENT
	case *tcpip.ErrNotConnected:
		return linux.ENOTCONN
	case *tcpip.ErrNotPermitted:
		return linux.EPERM
	case *tcpip.ErrNotSupported:
		return linux.EOPNOTSUPP
	case *tcpip.ErrPortInUse:
		return linux.EADDRINUSE
	case *tcpip.ErrTimeout:
		return linux.ETIMEDOUT
	case *tcpip.ErrUnknownProtocol:
		return linux.EPROTONOSUPPORT
	case *tcpip.ErrUnknownProtocolOption, *tcpip.ErrQueueSizeNotSupported:
		return linux.ENOPROTOOPT
	case *tcpip.ErrWouldBlock:
		return linux.EAGAIN
	case *tcpip.ErrEndpointBusy:
		return linux.EBUSY
	}
	return linux.EINVAL
}
