package edge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hostChanges are the settings of the host that an edge has changed. They are in a file before they are made, so that
// another process can undo them.
type hostChanges struct {
	file string
	// Routes are the routes with another MTU, and those that the edge has added.
	Routes []routeChange `json:"routes"`
	// ReversePath has the mode of the reverse-path filter before, by interface.
	ReversePath map[string]string `json:"reverse_path"`
}

// openChanges reads the changes that an earlier process made.
func openChanges(c *Config) (*hostChanges, error) {
	h := &hostChanges{file: filepath.Join(c.State, c.Name+".changes"), ReversePath: map[string]string{}}
	data, err := os.ReadFile(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the changes of the host: %w", err)
	}
	if err := json.Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("read the changes of the host in %s: %w", h.file, err)
	}
	return h, nil
}

// save writes the changes.
func (h *hostChanges) save() error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the changes of the host: %w", err)
	}
	next := h.file + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write the changes of the host: %w", err)
	}
	if err := os.Rename(next, h.file); err != nil {
		return fmt.Errorf("write the changes of the host: %w", err)
	}
	return nil
}

// reversePathFile returns the setting of the reverse-path filter: 0 off, 1 strict, 2 loose (RFC 3704). The stricter of
// the settings of the interface and of "all" holds, where 2 counts as the highest number.
func reversePathFile(device string) string { return "/proc/sys/net/ipv4/conf/" + device + "/rp_filter" }

// loosenReversePath lets an interface accept packets whose source is routed over another interface: a copy arrives on
// every path.
func (h *hostChanges) loosenReversePath(device string) error {
	all, err := readSetting(reversePathFile("all"))
	if err != nil {
		return err
	}
	own, err := readSetting(reversePathFile(device))
	if err != nil {
		return err
	}
	if max(all, own) != "1" {
		return nil
	}
	if _, ok := h.ReversePath[device]; !ok {
		h.ReversePath[device] = own
		if err := h.save(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(reversePathFile(device), []byte("2"), 0); err != nil {
		return fmt.Errorf("%w: the strict reverse-path filter of the interface %s drops copies and cannot be changed; "+
			"set it first: sysctl -w net.ipv4.conf.%s.rp_filter=2: %w", ErrPrivileges, device, device, err)
	}
	return nil
}

func readSetting(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read a setting of the host: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// restore undoes all changes and removes the file.
func (h *hostChanges) restore() error {
	var all []error
	for _, change := range slices.Clone(h.Routes) {
		all = append(all, h.undoRoute(change))
	}
	for device, mode := range h.ReversePath {
		err := os.WriteFile(reversePathFile(device), []byte(mode), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, fmt.Errorf("restore the reverse-path filter of the interface %s: %w", device,
				denied(err)))
		}
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	if err := os.Remove(h.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the list of changes of the host: %w", err)
	}
	return nil
}
