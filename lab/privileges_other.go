//go:build !unix

package lab

import (
	"errors"
	"fmt"
	"os/exec"
)

func dropPrivileges(cmd *exec.Cmd) error {
	return fmt.Errorf("run %s as another user: %w", cmd.Path, errors.ErrUnsupported)
}
