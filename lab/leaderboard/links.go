package leaderboard

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/netem"
)

// ErrLink reports a recorded link that cannot be used. The wrapping error has the name and the reason.
var ErrLink = errors.New("recorded link")

// Source is a published file with recorded links.
type Source struct {
	Name    string `yaml:"name" json:"name"`
	File    string `yaml:"file" json:"file,omitempty"`
	URL     string `yaml:"url" json:"url,omitempty"`
	SHA256  string `yaml:"sha256" json:"sha256,omitempty"`
	Licence string `yaml:"licence" json:"licence"`
	Origin  string `yaml:"origin" json:"origin"`
}

// Link is a link with a recorded rate.
type Link struct {
	Name   string `yaml:"name" json:"name"`
	Source string `yaml:"source" json:"source"`
	// Kind is the kind of the network, and Format that of the recording.
	Kind   string `yaml:"kind" json:"kind"`
	Format Format `yaml:"format" json:"-"`
	// Member is the file within an archive or a folder.
	Member string `yaml:"member" json:"-"`
	// Tuned is set if the link was used to change GCC.
	Tuned bool `yaml:"tuned" json:"tuned"`
}

// Format is the format of a recording.
type Format string

// The formats.
const (
	// FormatPackets has, in each line, a time in milliseconds at which a packet of 1,500 bytes may leave.
	FormatPackets Format = "packets"
	// FormatGNetTrack is a zip archive with CSV files of G-NetTrack Pro.
	FormatGNetTrack Format = "gnettrack"
	// FormatRates is CSV with the columns t_s and mbps.
	FormatRates Format = "rates"
)

// Links are the sources and the links.
type Links struct {
	Sources []Source `yaml:"sources"`
	Links   []Link   `yaml:"links"`
}

//go:embed links.yaml
var linksText []byte

// KnownLinks returns the recorded links.
func KnownLinks() (*Links, error) {
	var l Links
	decoder := yaml.NewDecoder(bytes.NewReader(linksText))
	decoder.KnownFields(true)
	if err := decoder.Decode(&l); err != nil {
		return nil, fmt.Errorf("links.yaml: %w", err)
	}
	for i := range l.Links {
		if l.source(l.Links[i].Source) == nil {
			return nil, fmt.Errorf("%w %s: no source has the name %q", ErrLink, l.Links[i].Name, l.Links[i].Source)
		}
	}
	return &l, nil
}

func (l *Links) source(name string) *Source {
	i := slices.IndexFunc(l.Sources, func(s Source) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &l.Sources[i]
}

// Folders are where the files of recorded links are: those of the test data, and those of vollab data fetch.
type Folders struct{ TestData, Fetched string }

// path returns the file of a link.
func (l *Links) path(link *Link, f Folders) string {
	if s := l.source(link.Source); s.URL != "" {
		return filepath.Join(f.Fetched, s.File)
	}
	return filepath.Join(f.TestData, "network-traces", link.Member)
}

// Read reads the rate of a link. The error wraps fs.ErrNotExist if the file is absent.
func (l *Links) Read(link *Link, folders Folders) (netem.RateTrace, error) {
	name := l.path(link, folders)
	data, err := os.ReadFile(name)
	if err != nil {
		return netem.RateTrace{}, err
	}
	if s := l.source(link.Source); s.URL != "" {
		if err := s.check(data); err != nil {
			return netem.RateTrace{}, err
		}
	}
	trace, err := link.parse(data)
	if err != nil {
		return netem.RateTrace{}, fmt.Errorf("%w %s: %w", ErrLink, link.Name, err)
	}
	return trace, nil
}
