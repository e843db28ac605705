package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestReadSystem(t *testing.T) {
	var e Environment
	processors := file("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\n" +
		"processor\t: 1\nmodel name\t: AMD EPYC\n")
	e.readSystem(fstest.MapFS{
		"proc/sys/kernel/osrelease":                            file("6.18.44\n"),
		"proc/sys/kernel/version":                              file("#1 SMP\n"),
		"proc/cpuinfo":                                         processors,
		"proc/meminfo":                                         file("MemTotal: 8146524 kB\nMemFree: 1 kB\n"),
		"sys/class/dmi/id/sys_vendor":                          file("Amazon EC2\n"),
		"sys/class/dmi/id/product_name":                        file("m7a.large\n"),
		"proc/sys/net/ipv4/tcp_rmem":                           file("4096\t131072\t6291456\n"),
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": file("performance\n"),
		"sys/devices/system/clocksource/clocksource0/current_clocksource": file("tsc\n"),
		"sys/devices/system/cpu/cpuidle/current_driver":                   file("intel_idle\n"),
		"sys/devices/system/cpu/cpuidle/current_governor":                 file("menu\n"),
		"sys/devices/system/cpu/cpu0/cpuidle/state0/name":                 file("POLL\n"),
		"sys/devices/system/cpu/cpu0/cpuidle/state0/disable":              file("0\n"),
		"sys/devices/system/cpu/cpu0/cpuidle/state1/name":                 file("C6\n"),
		"sys/devices/system/cpu/cpu0/cpuidle/state1/disable":              file("1\n"),
	})
	for name, test := range map[string]struct{ got, want string }{
		"kernel": {e.Kernel, "6.18.44 #1 SMP"}, "processor": {e.Processor, "AMD EPYC"},
		"hypervisor": {e.Hypervisor, "Amazon EC2 m7a.large"}, "clock": {e.Clock, "tsc"},
		"idle": {e.Idle, "intel_idle, menu: POLL"}, "frequency": {e.Frequency, "performance"},
		"tcp_rmem": {e.Settings["net.ipv4.tcp_rmem"], "4096 131072 6291456"},
	} {
		if test.got != test.want {
			t.Errorf("%s: expected %q, got %q", name, test.want, test.got)
		}
	}
	if e.Memory != 8146524<<10 {
		t.Errorf("expected 8146524 kB, got %d bytes", e.Memory)
	}
	if _, present := e.Settings["net.core.rmem_max"]; present {
		t.Error("expected no setting that the system does not have")
	}
}

// TestArmProcessor: Arm has numbers of parts, and its flags do not report a hypervisor.
func TestArmProcessor(t *testing.T) {
	var e Environment
	e.readSystem(fstest.MapFS{"proc/cpuinfo": file("processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd40\n")})
	if e.Processor != "part 0xd40" || e.Hypervisor != "" || e.Idle != "" {
		t.Errorf("unexpected %+v", e)
	}
}

func TestSecrets(t *testing.T) {
	got := withoutSecrets([]string{"vollab", "run", "--token", "abc", "--admin-key=x", "--seed", "1", "--token",
		"--json"})
	want := []string{"vollab", "run", "--token", "…", "--admin-key=…", "--seed", "1", "--token", "--json"}
	if !slices.Equal(got, want) {
		t.Errorf("expected %q, got %q", want, got)
	}
}

// TestData compares the hash with the command of its documentation.
func TestData(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"b.txt": "bee", "a/c d.txt": "sea", "a.txt": "", "B.txt": "x"} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if e.Data.Files != 4 || e.Data.Bytes != 7 {
		t.Errorf("expected 4 files of 7 bytes, got %+v", e.Data)
	}
	if e.Cores < 1 || len(e.Arguments) == 0 || !strings.HasPrefix(e.Go, "go") {
		t.Errorf("unexpected %+v", e)
	}
	var names []string
	for _, l := range e.Lines() {
		names = append(names, l.Name)
	}
	for _, want := range []string{"processor", "Go", "command", "data"} {
		if !slices.Contains(names, want) {
			t.Errorf("expected a line %s, got %v", want, names)
		}
	}
	if e, err := Read(t.Context(), filepath.Join(folder, "none")); err != nil || e.Data != nil {
		t.Errorf("expected no data of an absent folder, got %v", err)
	}
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("the program sha256sum is not installed")
	}
	command := exec.CommandContext(t.Context(), "sh", "-c",
		`find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`)
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want, _, _ := strings.Cut(string(out), " "); want != e.Data.Hash {
		t.Errorf("expected %s, got %s", want, e.Data.Hash)
	}
}
