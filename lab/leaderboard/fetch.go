package leaderboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
)

const (
	// maxSource bounds the size of a source, in bytes, and fetchTime the time of one download.
	maxSource = 256 << 20
	fetchTime = 5 * time.Minute
)

// check checks the hash of a source.
func (s *Source) check(data []byte) error {
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != s.SHA256 {
		return fmt.Errorf("%w: %s has the SHA-256 %s, expected %s", ErrLink, s.File, got, s.SHA256)
	}
	return nil
}

// fetch downloads a source into a folder unless the folder has it. from is a folder with files that were downloaded
// before, or empty.
func (s *Source) fetch(ctx context.Context, folder, from string) (state string, err error) {
	name := filepath.Join(folder, s.File)
	if data, err := os.ReadFile(name); err == nil && s.check(data) == nil {
		return "present", nil
	}
	var data []byte
	if from != "" {
		data, err = os.ReadFile(filepath.Join(from, s.File))
	} else {
		data, err = s.download(ctx)
	}
	if err != nil {
		return "", err
	}
	if err := s.check(data); err != nil {
		return "", err
	}
	// A file is complete or absent.
	if err := os.WriteFile(name+".part", data, 0o644); err != nil {
		return "", err
	}
	return "fetched", os.Rename(name+".part", name)
}

func (s *Source) download(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", s.URL, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxSource+1))
	if err == nil && len(data) > maxSource {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrLink, s.URL, maxSource)
	}
	return data, err
}

// fetchedFolder is the default folder of recorded links: beside those of the test data.
func fetchedFolder() string { return filepath.Join(lab.TestData(), "network-traces") }

// DataCommand returns the command vollab data.
func DataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "List and fetch the published data that measurements use"}
	var folder, from string
	fetch := &cobra.Command{
		Use:   "fetch",
		Short: "Download the recorded links of vollab bench cc and check their hashes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			links, err := KnownLinks()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			for i := range links.Sources {
				s := &links.Sources[i]
				if s.URL == "" {
					continue
				}
				state, err := s.fetch(cmd.Context(), folder, from)
				if err != nil {
					return err
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s\n", s.File, state, s.Licence)
			}
			return nil
		},
	}
	fetch.Flags().StringVar(&folder, "to", fetchedFolder(), "folder of the files")
	fetch.Flags().StringVar(&from, "from", "", "folder with the files, downloaded before, in place of the network")
	list := &cobra.Command{
		Use:   "list",
		Short: "List the recorded links with URL, licence and SHA-256",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			links, err := KnownLinks()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range links.Sources {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, s.Licence, s.SHA256, s.URL)
			}
			return table.Flush()
		},
	}
	cmd.AddCommand(fetch, list)
	return cmd
}
