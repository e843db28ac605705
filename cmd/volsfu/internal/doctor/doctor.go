// Package doctor checks the host of a server: configuration, ports, public address, certificate, clock and relay. Each
// check has a result and, if something is wrong, an advice. The judgements are pure; sockets and files are a thin shell
// around them.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/config"
)

// Status is the result of a check.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is the result of one check.
type Finding struct {
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	Result  string `json:"result"`
	// Advice names the next step of the operator, empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// ErrFailed means that a check has failed.
var ErrFailed = errors.New("checks have failed")

// options are the values of the flags.
type options struct {
	settings config.Config
	// url is the address at which clients reach the server, empty if it is not checked.
	url string
	// authority is the PEM file of a private authority for url.
	authority string
	// timeServer is an NTP server or a URL whose answers have a Date, empty if there is none.
	timeServer string
	asJSON     bool
}

// checkTimeout bounds one check.
const checkTimeout = 10 * time.Second

// Command returns the command.
func Command() *cobra.Command {
	o := options{settings: config.DefaultConfig()}
	loader := config.NewLoader(&o.settings)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the host of the server, and print advice",
		Long: "Check configuration, ports, socket buffers, public address, certificate, clock and relay on the " +
			"server's host, and print what to do. The configuration is given in the same way as for volsfu serve. " +
			"The page /test checks the path from a visitor's browser.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loader.Load(os.Environ()); err != nil {
				return err
			}
			findings := o.findings(cmd.Context(), loader)
			if err := print(cmd.OutOrStdout(), findings, o.asJSON); err != nil {
				return err
			}
			return failure(findings)
		},
	}
	loader.AddFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "address at which clients reach the server, https://HOST[:PORT], to check its "+
		"certificate and that websockets pass")
	f.StringVar(&o.authority, "ca", "", "PEM file with the certificate authorities to trust in place of the system's, "+
		"for --url")
	f.StringVar(&o.timeServer, "time-server", "", "compare the clock with this NTP server, or with the answers of an "+
		"https:// URL")
	f.BoolVar(&o.asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// findings runs all checks.
func (o *options) findings(ctx context.Context, loader *config.Loader) []Finding {
	found := configuration(loader, os.Environ())
	if found[0].Status == Failed {
		return found
	}
	for _, check := range []func(context.Context) []Finding{
		o.keys, o.ports, o.buffers, o.addresses, o.certificate, o.clients, o.clock, o.iceServers, o.relay,
	} {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		found = append(found, check(ctx)...)
		cancel()
	}
	return found
}

// configuration checks the configuration and the names of environment variables.
func configuration(loader *config.Loader, environment []string) []Finding {
	const subject = "configuration"
	if err := loader.Validate(); err != nil {
		return []Finding{{subject, Failed, err.Error(), "Correct the named key; deploy/volsfu.yaml explains all keys."}}
	}
	if unknown := loader.UnknownVariables(environment); len(unknown) > 0 {
		return []Finding{{subject, Warning, "unknown environment variables: " + strings.Join(unknown, ", "),
			"Check their spelling; the server ignores them."}}
	}
	return []Finding{{subject, OK, "all keys are valid", ""}}
}

// failure returns an error that names the failed checks, nil if there is none.
func failure(findings []Finding) error {
	var failed []string
	for _, f := range findings {
		if f.Status == Failed {
			failed = append(failed, f.Subject)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrFailed, strings.Join(failed, ", "))
}

func print(w io.Writer, findings []Finding, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string][]Finding{"findings": findings})
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-8s %-16s %s\n", f.Status, f.Subject, f.Result); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(w, "%-25s → %s\n", "", f.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
