package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/config"
)

var (
	unitPath       = filepath.Join(root, "systemd", "volsfu.service")
	composePath    = filepath.Join(root, "compose.yaml")
	dockerfilePath = filepath.Join(root, "Dockerfile")
)

// unit has the values of each key of each section of a systemd unit, in their order.
type unit map[string]map[string][]string

func parseUnit(text string) (unit, error) {
	u := make(unit)
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
			u[section] = make(map[string][]string)
		default:
			key, value, found := strings.Cut(line, "=")
			if !found || u[section] == nil {
				return nil, fmt.Errorf("line %q: expected KEY=VALUE in a section", line)
			}
			u[section][key] = append(u[section][key], value)
		}
	}
	return u, nil
}

// one returns the value of a key that a unit has exactly once.
func (u unit) one(t *testing.T, section, key string) string {
	t.Helper()
	values := u[section][key]
	if len(values) != 1 {
		t.Fatalf("[%s] has %q for %s, expected one value", section, values, key)
	}
	return values[0]
}

// quantity is a number with a binary unit: 4G in systemd, 4g in Compose, 4GiB in Go.
var quantity = regexp.MustCompile(`^(\d+)([kKmMgG])(i?B)?$`)

func parseBytes(text string) (int64, error) {
	match := quantity.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%q is not a number of bytes with a unit like 4G", text)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, err
	}
	return n << (10 * (1 + strings.Index("kmg", strings.ToLower(match[2])))), nil
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"4G": 4 << 30, "3GiB": 3 << 30, "512m": 512 << 20, "7K": 7 << 10} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, expected %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "4", "4Q", "infinity", "80%", "-1G"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q is %d, expected an error", text, got)
		}
	}
}

// bounds are the limits of one process of the server.
type bounds struct{ goMemory, memory, tasks, files string }

// manyCores is the number of cores for which the limits have to suffice.
const manyCores = 32

// check checks the calculation that the unit's comments explain.
func (b bounds) check(c *config.Config) error {
	goMemory, err := parseBytes(b.goMemory)
	if err != nil {
		return fmt.Errorf("GOMEMLIMIT: %w", err)
	}
	memory, err := parseBytes(b.memory)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if least := 2*c.Forward.CacheBytes + 1<<30; goMemory < least {
		return fmt.Errorf("GOMEMLIMIT is %d bytes, expected %d or more: twice forward.cache_bytes and 1 GiB",
			goMemory, least)
	}
	// The kernel doubles the configured size of a receive buffer (socket(7), SO_RCVBUF).
	if buffers := int64(manyCores) * 2 * int64(c.Media.ReceiveBuffer); memory-goMemory < buffers+256<<20 {
		return fmt.Errorf("the memory limit is %d bytes above GOMEMLIMIT, expected %d for the receive buffers of %d "+
			"cores, and 256 MiB", memory-goMemory, buffers, manyCores)
	}
	tasks, err := strconv.Atoi(b.tasks)
	if err != nil || tasks < 4*manyCores || tasks > 4096 {
		return fmt.Errorf("%q tasks, expected four for each of %d cores at least, and 4096 at most", b.tasks, manyCores)
	}
	files, err := strconv.Atoi(b.files)
	if most := c.Media.TCPConnections + 10_000; err != nil || files < most {
		return fmt.Errorf("%q files, expected %d or more: media.tcp_connections and 10,000 websockets", b.files, most)
	}
	return nil
}

func TestBounds(t *testing.T) {
	c := config.DefaultConfig()
	good := bounds{"3GiB", "4G", "512", "65536"}
	if err := good.check(&c); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]bounds{
		"no memory limit":                 {"3GiB", "infinity", "512", "65536"},
		"Go above the limit":              {"5GiB", "4G", "512", "65536"},
		"no room for the kernel":          {"4GiB", "4G", "512", "65536"},
		"no room for garbage":             {"1GiB", "4G", "512", "65536"},
		"no limit of tasks":               {"3GiB", "4G", "infinity", "65536"},
		"too few tasks":                   {"3GiB", "4G", "16", "65536"},
		"fewer files than TCP may occupy": {"3GiB", "4G", "512", "4096"},
	} {
		if bad.check(&c) == nil {
			t.Errorf("%s: %+v is accepted", name, bad)
		}
	}
}

// TestUnitLimits checks that systemd always restarts the server, and that the server cannot exhaust the host.
func TestUnitLimits(t *testing.T) {
	u, err := parseUnit(string(read(t, unitPath)))
	if err != nil {
		t.Fatal(err)
	}
	if got := u.one(t, "Unit", "StartLimitIntervalSec"); got != "0" {
		t.Errorf("StartLimitIntervalSec is %s, expected 0: the unit would not be restarted after several crashes", got)
	}
	if got := u.one(t, "Service", "Restart"); got != "on-failure" && got != "always" {
		t.Errorf("Restart is %s, expected on-failure or always", got)
	}
	var goMemory string
	for _, assignment := range u["Service"]["Environment"] {
		if value, is := strings.CutPrefix(assignment, "GOMEMLIMIT="); is {
			goMemory = value
		}
	}
	c := config.DefaultConfig()
	b := bounds{goMemory, u.one(t, "Service", "MemoryMax"), u.one(t, "Service", "TasksMax"),
		u.one(t, "Service", "LimitNOFILE")}
	if err := b.check(&c); err != nil {
		t.Error(err)
	}
}

// TestUnitVerifies checks the units with systemd. systemd ignores a value that it does not understand, with a line on
// standard error.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("skipped: systemd-analyze of the package systemd is missing: %v", err)
	}
	for _, name := range []string{"volsfu", "volnet"} {
		t.Run(name, func(t *testing.T) {
			text := string(read(t, filepath.Join(root, "systemd", name+".service")))
			if complaints := verifyUnit(t, analyze, name, text); complaints != "" {
				t.Errorf("systemd complains of the unit:\n%s", complaints)
			}
			if verifyUnit(t, analyze, name, strings.Replace(text, "MemoryMax=", "MemoryMax=x", 1)) == "" {
				t.Error("systemd does not complain of a unit with a bad MemoryMax")
			}
		})
	}
}

// verifyUnit returns the lines of systemd-analyze about the unit of a program, with another program in its place, since
// the program need not be installed.
func verifyUnit(t *testing.T, analyze, name, text string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	installed := "ExecStart=/usr/local/bin/" + name + " "
	if !strings.Contains(text, installed) {
		t.Fatalf("the unit of %s has no line with %q", name, installed)
	}
	path := filepath.Join(t.TempDir(), name+".service")
	if err := os.WriteFile(path, []byte(strings.Replace(text, installed, "ExecStart="+program+" ", 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
	var complaints []string
	for line := range strings.Lines(string(out)) {
		// Other units of the machine are not checked.
		if strings.Contains(line, name+".service") {
			complaints = append(complaints, line)
		}
	}
	if err != nil && len(complaints) == 0 {
		t.Skipf("skipped: systemd-analyze does not work here: %v: %s", err, out)
	}
	return strings.Join(complaints, "")
}

// composition is the part of a Compose file that limits and exposes containers.
type composition struct {
	Services map[string]*struct {
		Image       string
		Build       map[string]any
		Environment map[string]string
		Ports       []string
		Networks    []string
		Restart     string
		MemLimit    string `yaml:"mem_limit"`
		Swap        string `yaml:"memswap_limit"`
		PidsLimit   string `yaml:"pids_limit"`
		Ulimits     map[string]string
		Logging     struct {
			Driver  string
			Options map[string]string
		}
	}
	Networks map[string]*struct{ Internal bool }
}

func parseComposition(t *testing.T) *composition {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal(read(t, composePath), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) == 0 || c.Services["volsfu"] == nil {
		t.Fatalf("%s: expected services, one of them volsfu", composePath)
	}
	return &c
}

// pinned is an image with its full version, or its digest.
var pinned = regexp.MustCompile(`(:v?\d+\.\d+\.\d+(-[a-z0-9.-]+)?|@sha256:[0-9a-f]{64})$`)

func TestComposeLimits(t *testing.T) {
	composition := parseComposition(t)
	for name, service := range composition.Services {
		memory, err := parseBytes(service.MemLimit)
		if err != nil {
			t.Errorf("%s: mem_limit: %v", name, err)
		}
		if swap, err := parseBytes(service.Swap); err != nil || swap != memory {
			t.Errorf("%s: memswap_limit is %q, expected that of mem_limit, %q, so that nothing is swapped", name,
				service.Swap, service.MemLimit)
		}
		if n, err := strconv.Atoi(service.PidsLimit); err != nil || n < 1 {
			t.Errorf("%s: pids_limit is %q, expected a number", name, service.PidsLimit)
		}
		size, err := parseBytes(service.Logging.Options["max-size"])
		files, countErr := strconv.Atoi(service.Logging.Options["max-file"])
		if service.Logging.Driver != "json-file" || err != nil || countErr != nil || files < 1 ||
			size*int64(files) > 1<<30 {
			t.Errorf("%s: the log has the limits %+v, expected json-file with max-size and "+
				"max-file, together at most 1 GiB", name, service.Logging)
		}
		if service.Restart != "unless-stopped" && service.Restart != "always" {
			t.Errorf("%s: restart is %q, expected unless-stopped or always", name, service.Restart)
		}
		if service.Build == nil && !pinned.MatchString(service.Image) {
			t.Errorf("%s: image %s has neither a full version nor a digest", name, service.Image)
		}
	}
	server := composition.Services["volsfu"]
	c := config.DefaultConfig()
	b := bounds{server.Environment["GOMEMLIMIT"], server.MemLimit, server.PidsLimit, server.Ulimits["nofile"]}
	if err := b.check(&c); err != nil {
		t.Errorf("volsfu: %v", err)
	}
}

// TestComposeExposure checks that only Prometheus can reach the admin listener, which needs no token.
func TestComposeExposure(t *testing.T) {
	composition := parseComposition(t)
	server := composition.Services["volsfu"]
	_, port, found := strings.Cut(server.Environment["VOLSFU_ADMIN_LISTEN"], ":")
	if !found || port == "" {
		t.Fatalf("VOLSFU_ADMIN_LISTEN is %q, expected an address with a port",
			server.Environment["VOLSFU_ADMIN_LISTEN"])
	}
	for _, published := range server.Ports {
		inner := published[strings.LastIndex(published, ":")+1:]
		if inner, _, _ = strings.Cut(inner, "/"); inner == port {
			t.Errorf("the admin port %s is published: %s", port, published)
		}
	}
	if len(server.Networks) == 0 {
		t.Error("volsfu is in the default network with every container: expected networks of its own")
	}
	for name, service := range composition.Services {
		if name == "volsfu" {
			continue
		}
		for _, published := range service.Ports {
			if !strings.HasPrefix(published, "127.0.0.1:") {
				t.Errorf("%s publishes %s, expected loopback only", name, published)
			}
		}
		for _, network := range service.Networks {
			shared := slices.Contains(server.Networks, network)
			switch {
			case shared && name != "prometheus":
				t.Errorf("%s shares the network %s with volsfu, and reaches its admin listener", name, network)
			case shared && !composition.Networks[network].Internal:
				t.Errorf("%s and volsfu share the network %s, which is not internal", name, network)
			}
		}
	}
	if !bytes.Contains(read(t, filepath.Join(root, "prometheus", "prometheus.yml")), []byte("volsfu:"+port)) {
		t.Errorf("Prometheus does not scrape volsfu:%s", port)
	}
}

// TestDockerfile checks that base images are pinned, and that the image exposes only ports for clients.
func TestDockerfile(t *testing.T) {
	text := read(t, dockerfilePath)
	if !bytes.Contains(text, []byte("\nCOPY --from=build /notices /\n")) {
		t.Error("the image lacks the licences of third parties, which scripts/inventory writes")
	}
	bases := 0
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		words := strings.Fields(scanner.Text())
		switch {
		case len(words) > 1 && words[0] == "FROM":
			words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "--") })
			if words[0] != "scratch" && !pinned.MatchString(words[0]) {
				t.Errorf("base image %s has neither a full version nor a digest", words[0])
			}
			bases++
		case len(words) > 1 && words[0] == "EXPOSE" && slices.Contains(words, "9090/tcp"):
			t.Error("the image exposes the admin port, which docker run --publish-all publishes")
		}
	}
	if bases == 0 {
		t.Error("expected base images, found none")
	}
}
