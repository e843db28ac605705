// Package environment describes the machine and the programs of a measurement, so that a reader can judge and repeat
// the measurement.
package environment

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Environment describes a machine. Texts are empty if the system does not have them.
type Environment struct {
	Processor string `json:"processor,omitempty"`
	Cores     int    `json:"cores"`
	// Memory is the size of the memory in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Kernel has release and version, Hypervisor the virtual machine monitor, or "yes" if the processor reports one
	// without a name.
	Kernel     string `json:"kernel,omitempty"`
	Hypervisor string `json:"hypervisor,omitempty"`
	// Clock is the kernel's clock source.
	Clock string `json:"clock,omitempty"`
	// Idle has the driver, the governor and the enabled states of idle processors, Frequency the governor of the
	// processors' frequency. Both add to latencies.
	Idle      string `json:"idle,omitempty"`
	Frequency string `json:"frequency,omitempty"`
	// Settings are the kernel's settings that influence networks, by name of sysctl.
	Settings map[string]string `json:"settings"`
	// Programs are the first lines that installed programs print as their versions, by name.
	Programs map[string]string `json:"programs"`
	Go       string            `json:"go"`
	// Commit is the revision of the source, followed by "with changes" if files had changed.
	Commit string `json:"commit,omitempty"`
	// Arguments are those of this program. Values of secrets are left out.
	Arguments []string `json:"arguments"`
	// Data describes the test data, nil without data.
	Data *Data `json:"data,omitempty"`
}

// Line is one property of an environment, for people.
type Line struct{ Name, Text string }

// Lines returns the properties that the system has, in a fixed order.
func (e *Environment) Lines() []Line {
	if e == nil {
		return nil
	}
	list := []Line{
		{"processor", strings.TrimSpace(fmt.Sprintf("%s %d cores", e.Processor, e.Cores))},
		{"memory", ""}, {"kernel", e.Kernel}, {"hypervisor", e.Hypervisor}, {"clock source", e.Clock},
		{"idle states", e.Idle}, {"frequency governor", e.Frequency}, {"settings", pairs(e.Settings, " = ", "; ")},
		{"programs", pairs(e.Programs, ": ", "; ")}, {"Go", e.Go}, {"commit", e.Commit},
		{"command", strings.Join(e.Arguments, " ")}, {"data", ""},
	}
	if e.Memory > 0 {
		list[1].Text = fmt.Sprintf("%.1f GiB", float64(e.Memory)/(1<<30))
	}
	if e.Data != nil {
		list[len(list)-1].Text = fmt.Sprintf("%d files, %d bytes, SHA-256 %s", e.Data.Files, e.Data.Bytes, e.Data.Hash)
	}
	return slices.DeleteFunc(list, func(l Line) bool { return l.Text == "" })
}

// pairs joins the entries of a map in the order of their names.
func pairs(entries map[string]string, equals, separator string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		texts = append(texts, name+equals+entries[name])
	}
	return strings.Join(texts, separator)
}

// settings are the read sysctls: buffers, congestion control and timers of the kernel's networks.
var settings = []string{
	"net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.default_qdisc",
	"net.core.netdev_max_backlog", "net.core.busy_poll", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_available_congestion_control",
	"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_ecn", "net.ipv4.udp_mem",
	"kernel.sched_rt_runtime_us", "vm.swappiness",
}

// programs are the programs that measurements use, with the argument that prints the version.
var programs = map[string]string{
	"iperf3": "--version", "ffmpeg": "-version", "vmaf": "--version", "ip": "-V", "tc": "-V", "node": "--version",
	"chromium": "--version", "gcc": "--version",
}

// programTime is the time limit for a program's version.
const programTime = 5 * time.Second

// Read describes this machine. data is the folder of the test data, which may be empty or absent.
func Read(ctx context.Context, data string) (*Environment, error) {
	e := &Environment{Cores: runtime.NumCPU(), Go: runtime.Version(), Arguments: withoutSecrets(os.Args),
		Programs: versions(ctx), Commit: commit()}
	e.readSystem(os.DirFS("/"))
	if data == "" {
		return e, nil
	}
	described, err := readData(os.DirFS(data))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	e.Data = described
	return e, err
}

// readSystem reads the files of /proc and /sys.
func (e *Environment) readSystem(root fs.FS) {
	e.Kernel = strings.TrimSpace(text(root, "proc/sys/kernel/osrelease") + " " + text(root, "proc/sys/kernel/version"))
	e.readProcessor(root)
	for line := range lines(root, "proc/meminfo") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseUint(fields[1], 10, 64)
			e.Memory = kilobytes << 10
		}
	}
	if product := text(root, "sys/class/dmi/id/product_name"); e.Hypervisor != "" && product != "" {
		e.Hypervisor = strings.TrimSpace(text(root, "sys/class/dmi/id/sys_vendor") + " " + product)
	}
	e.Clock = text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
	e.Idle = idle(root)
	e.Frequency = text(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	e.Settings = make(map[string]string)
	for _, name := range settings {
		if value := text(root, "proc/sys/"+strings.ReplaceAll(name, ".", "/")); value != "" {
			e.Settings[name] = value
		}
	}
}

// readProcessor reads /proc/cpuinfo of x86, or of Arm, which has no name of the model.
func (e *Environment) readProcessor(root fs.FS) {
	for line := range lines(root, "proc/cpuinfo") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "model name":
			e.Processor = value
		case "CPU part":
			e.Processor = "part " + value
		case "flags":
			for flag := range strings.FieldsSeq(value) {
				if flag == "hypervisor" {
					e.Hypervisor = "yes"
				}
			}
		}
	}
}

// idle returns driver, governor and enabled states of idle processors, for instance "haltpoll, haltpoll: POLL, C1".
func idle(root fs.FS) string {
	const folder = "sys/devices/system/cpu/"
	driver := text(root, folder+"cpuidle/current_driver")
	if driver == "" {
		return ""
	}
	states, _ := fs.Glob(root, folder+"cpu0/cpuidle/state*")
	var enabled []string
	for _, state := range states {
		if text(root, state+"/disable") != "1" {
			enabled = append(enabled, text(root, state+"/name"))
		}
	}
	return driver + ", " + text(root, folder+"cpuidle/current_governor") + ": " + strings.Join(enabled, ", ")
}

// text returns the content of a file on one line, empty if the file cannot be read.
func text(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

// lines returns the lines of a file, none if the file cannot be read.
func lines(root fs.FS, name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		data, _ := fs.ReadFile(root, name)
		for line := range strings.Lines(string(data)) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// versions returns the versions of the installed programs.
func versions(ctx context.Context) map[string]string {
	installed := make(map[string]string)
	for name, argument := range programs {
		if line := version(ctx, name, argument); line != "" {
			installed[name] = line
		}
	}
	return installed
}

// version returns the first line that a program prints, empty if the program is not installed.
func version(ctx context.Context, name, argument string) string {
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, argument).Output()
	if err != nil {
		return ""
	}
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Scan()
	return strings.TrimSpace(scanner.Text())
}

// commit returns the revision of the source that the Go command recorded in this program.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, changed := "", ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				changed = " with changes"
			}
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changed
}

// secrets are parts of the names of flags whose values are secret.
var secrets = []string{"token", "secret", "passphrase", "password", "key"}

// withoutSecrets returns arguments without the values of secrets.
func withoutSecrets(arguments []string) []string {
	kept := make([]string, len(arguments))
	hide := false
	for i, argument := range arguments {
		name, _, assigned := strings.Cut(argument, "=")
		secret := strings.HasPrefix(name, "-") && containsAny(name, secrets)
		switch {
		case hide && !strings.HasPrefix(argument, "-"):
			argument = "…"
		case secret && assigned:
			argument = name + "=…"
		}
		kept[i] = argument
		hide = secret && !assigned
	}
	return kept
}

func containsAny(name string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
