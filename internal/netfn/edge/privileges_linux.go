package edge

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// capabilities are needed to load and attach programs (CAP_BPF since Linux 5.8).
var capabilities = []struct {
	name string
	bit  int
}{{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_BPF", unix.CAP_BPF}}

// checkPrivileges returns an error that names the capabilities the process lacks.
func checkPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read the capabilities of the process: %w", err)
	}
	var missing []string
	for _, c := range capabilities {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("%w: the process lacks %s; it needs CAP_NET_ADMIN and CAP_BPF", ErrPrivileges,
			strings.Join(missing, " and "))
	}
	return nil
}

// denied adds ErrPrivileges to an error of the kernel that refuses permission.
func denied(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: %w", ErrPrivileges, err)
	}
	return err
}
