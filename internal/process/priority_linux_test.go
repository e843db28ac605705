package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// raising is the environment variable with which the test's program is run again to raise its priority, which cannot be
// undone without a privilege.
const raising = "VOLSFU_TEST_RAISING"

func TestMain(m *testing.M) {
	if nice, err := strconv.Atoi(os.Getenv(raising)); err == nil {
		os.Exit(raise(nice))
	}
	os.Exit(m.Run())
}

// Exit statuses of the program that raises its priority.
const (
	raised = iota
	refused
	otherwise
)

// raise raises the program's priority while it has several threads, and checks all of them, and one that starts later.
func raise(nice int) int {
	begin := func() {
		ready := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(ready)
			select {}
		}()
		<-ready
	}
	for range 5 {
		begin()
	}
	if err := RaisePriority(nice); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return refused
	} else if err != nil {
		println(err.Error())
		return otherwise
	}
	for range 5 {
		begin()
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) < 10 {
		return otherwise
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		if inverse, err := unix.Getpriority(unix.PRIO_PROCESS, id); err != nil || 20-inverse != nice {
			println(thread.Name(), "has", 20-inverse)
			return otherwise
		}
	}
	// No thread may have a higher niceness than before.
	if err := RaisePriority(nice + 5); err != nil {
		return otherwise
	}
	if inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || 20-inverse != nice {
		return otherwise
	}
	return raised
}

func TestRaise(t *testing.T) {
	for _, nice := range []int{-10, -1} {
		inverse, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		if 20-inverse < nice {
			t.Skipf("this test has the niceness %d already", 20-inverse)
		}
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), raising+"="+strconv.Itoa(nice))
		program.Stderr = os.Stderr
		_ = program.Run()
		switch status := program.ProcessState.ExitCode(); status {
		case raised:
		case refused:
			t.Skip("raising a priority is not allowed here")
		default:
			t.Errorf("niceness %d: the program ended with status %d", nice, status)
		}
	}
}
