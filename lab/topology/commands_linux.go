package topology

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// networkVariable is the environment variable by which the commands of a network are known once its process is gone: the process's number, when it started, and a count.
const networkVariable = "VOLLAB_NETWORK"

// Patience is how long commands may take to end after SIGTERM.
const endPatience = 2 * time.Second

// endPoll is how often is looked whether they have.
const endPoll = 10 * time.Millisecond

// networks counts those that this process has started.
var networks atomic.Int64

// newID is a name for a network that no other has, in this process or another.
func newID() string {
	return fmt.Sprintf("%d.%s.%d", os.Getpid(), startOf(os.Getpid()), networks.Add(1))
}

// startOf is when a process was started, in ticks since the system was; empty if there is no such process. A number that is used again has another start.
func startOf(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The name of the program, in brackets, may contain anything; the start is the 20th field after it.
	_, rest, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	if fields := strings.Fields(string(rest)); len(fields) >= 20 {
		return fields[19]
	}
	return ""
}

// dieWithParent makes a command one that is killed when this process dies; or, since that is how the kernel means it, the thread that started it. So no thread of this process ends that may
// have started commands: those that leave their goroutine locked do.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// processes calls look with the number of every process.
func processes(look func(pid int)) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			look(pid)
		}
	}
}

// endStrays kills what commands of networks have left running whose process is gone. Such commands cannot reach anything any more, and only keep their namespaces from going.
func endStrays() {
	endMarked(func(id string) bool {
		owner, rest, _ := strings.Cut(id, ".")
		start, _, _ := strings.Cut(rest, ".")
		number, err := strconv.Atoi(owner)
		return err == nil && start != "" && startOf(number) != start
	})
}

// EndCommandsOf kills the commands of a network, by its ID, whose process has been killed before it could do so, and all that they have started.
func EndCommandsOf(id string) {
	endMarked(func(other string) bool { return other == id })
}

// endMarked kills the processes whose environment has the ID of a network that is chosen.
func endMarked(chosen func(id string) bool) {
	prefix := []byte(networkVariable + "=")
	processes(func(pid int) {
		environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			return
		}
		for _, variable := range bytes.Split(environment, []byte{0}) {
			if id, ours := bytes.CutPrefix(variable, prefix); ours && chosen(string(id)) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}

// inside are the processes in the network's namespaces.
func (n *Network) inside() []int {
	inodes := make(map[string]bool)
	for i := range n.topology.Hosts {
		if inode, err := n.router.Inode(n.layout.hosts[i]); err == nil {
			inodes[fmt.Sprintf("net:[%d]", inode)] = true
		}
	}
	var list []int
	processes(func(pid int) {
		if link, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/net")); err == nil && inodes[link] && pid != os.Getpid() {
			list = append(list, pid)
		}
	})
	return list
}

// endCommands ends all processes in the namespaces.
func (n *Network) endCommands() {
	for _, pid := range n.inside() {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	for deadline := time.Now().Add(endPatience); ; time.Sleep(endPoll) {
		left := n.inside()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
	}
}
