// Package cluster has the commands that prepare a cluster of servers.
package cluster

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
)

// Command returns volsfu cluster.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Prepare a cluster of servers"}
	cmd.AddCommand(newCertificate())
	return cmd
}

func newCertificate() *cobra.Command {
	var directory, cluster, region string
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "certificate NODE...",
		Short: "Make the certificates of nodes",
		Long: "Make a certificate for each node, signed by the authority of the cluster, and the authority if the " +
			"directory has none. The files of a node are in a directory with the name of the node, for " +
			"--cluster-directory of volsfu serve. The key of the authority, ca-key.pem, stays where it is: nodes do " +
			"not need it. Each node gets the secret of the cluster, secret.key, which is created if there is none. " +
			"Files that exist are replaced, and running nodes read them again.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, nodes []string) error {
			if validFor <= 0 {
				return fmt.Errorf("--valid-for is %v, expected more than 0", validFor)
			}
			now := time.Now()
			authority, err := certificate.OpenAuthority(directory, cluster, now)
			if err != nil {
				return err
			}
			for _, node := range nodes {
				at := filepath.Join(directory, node)
				if err := certificate.CheckName(node); err != nil {
					return fmt.Errorf("node: %w", err)
				}
				if err := authority.Issue(at, node, region, now, validFor); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), at)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&directory, "directory", "cluster", "directory of the authority and of the nodes' directories")
	flags.StringVar(&cluster, "name", "volsfu", "name of the cluster")
	flags.StringVar(&region, "region", "", "region of the nodes")
	flags.DurationVar(&validFor, "valid-for", 365*24*time.Hour, "validity of the nodes' certificates")
	return cmd
}
