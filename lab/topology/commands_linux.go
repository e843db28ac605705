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

// networkVariable is the environment variable that identifies the commands of a network after the network's process has
// ended. Its value is the process number, the start of the process, and a count.
const networkVariable = "VOLLAB_NETWORK"

// endPatience is the time limit for commands to end after SIGTERM.
const endPatience = 2 * time.Second

// endPoll is the interval at which the end of killed processes is checked.
const endPoll = 10 * time.Millisecond

// networks counts the networks started by this process.
var networks atomic.Int64

// newID returns a network ID that is unique over this process and others.
func newID() string {
	return fmt.Sprintf("%d.%s.%d", os.Getpid(), startOf(os.Getpid()), networks.Add(1))
}

// startOf returns the start of a process, in ticks since the system's start; empty if the process does not exist. A
// process number that is used again has a different start.
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

// dieWithParent makes the kernel kill a command when this process dies; more precisely, when the thread that started
// the command ends. Therefore no thread that may have started commands may end before the process: threads of
// goroutines that exit locked do end.
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

// endStrays kills commands left running by networks whose process has ended. These commands have no connectivity and
// prevent the removal of their namespaces.
func endStrays() {
	endMarked(func(id string) bool {
		owner, rest, _ := strings.Cut(id, ".")
		start, _, _ := strings.Cut(rest, ".")
		number, err := strconv.Atoi(owner)
		return err == nil && start != "" && startOf(number) != start
	})
}

// EndCommandsOf kills the commands of the network with this ID and all their descendants. It is for networks whose
// process was killed before it could end the commands.
func EndCommandsOf(id string) {
	endMarked(func(other string) bool { return other == id })
}

// endMarked kills the processes whose environment has the ID of a chosen network.
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

// inside returns the processes in the network's namespaces.
func (n *Network) inside() []int {
	inodes := make(map[string]bool)
	for i := range n.topology.Hosts {
		if inode, err := n.router.Inode(n.layout.hosts[i]); err == nil {
			inodes[fmt.Sprintf("net:[%d]", inode)] = true
		}
	}
	var list []int
	processes(func(pid int) {
		if link, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/net")); err == nil && inodes[link] &&
			pid != os.Getpid() {
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
