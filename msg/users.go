package msg

import (
	"fmt"
	"os"
	"slices"
)

// AnyUser in Options.Users allows every user.
const AnyUser = -1

// UserError: a user is at the other end, or owns the name, whom Options.Users does not
// allow. errors.Is(err, fs.ErrPermission) holds.
type UserError struct {
	UID  int
	What string // that is the user's
}

func (e *UserError) Error() string {
	return fmt.Sprintf("msg: %s belongs to user %d, who is not this process's user, not root, and not in Options.Users", e.What, e.UID)
}

// Is makes a UserError a missing permission.
func (e *UserError) Is(target error) bool { return target == os.ErrPermission }

// allow returns an error if uid may not be at the other end. A user that is not known
// is one of another machine, whom the transport judges.
func (o *Options) allow(uid int, what string) error {
	if uid < 0 || uid == 0 || uid == os.Geteuid() || slices.Contains(o.Users, uid) || slices.Contains(o.Users, AnyUser) {
		return nil
	}
	return &UserError{UID: uid, What: what}
}

// allowPeer is allow for whoever is at the other end of a link to a service that the user
// owner is said to have; 0: nobody has said, or root has it and has let somebody serve.
func (o *Options) allowPeer(link Link, owner int) error {
	p := link.Peer()
	if err := o.allow(p.UID, "the process at "+p.Addr); err != nil {
		return err
	}
	if owner > 0 && p.UID > 0 && p.UID != owner {
		return &UserError{UID: p.UID, What: fmt.Sprintf("the process at %s, whose name is user %d's,", p.Addr, owner)}
	}
	return nil
}
