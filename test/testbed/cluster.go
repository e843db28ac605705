package testbed

import (
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/config"
)

// NewCluster starts servers in this process that are the nodes of a cluster. The certificates are in a directory. If
// not nil, change changes the configuration of each node.
func NewCluster(
	directory string, log *zap.Logger, change func(*config.Config), names ...string,
) (nodes []*Conference, err error) {
	defer func() {
		if err != nil {
			for _, node := range nodes {
				node.Close()
			}
		}
	}()
	now := time.Now()
	authority, err := certificate.OpenAuthority(directory, "testbed", now)
	if err != nil {
		return nil, err
	}
	url := "embedded://:0"
	for _, name := range names {
		c := ConferenceConfig()
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = url, 0, filepath.Join(directory, name)
		if change != nil {
			change(&c)
		}
		if err := authority.Issue(c.Cluster.Directory, name, "", now, time.Hour); err != nil {
			return nodes, err
		}
		node, err := NewConference(c, nil, log.Named(name))
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
		url += fmt.Sprintf(",127.0.0.1:%d", node.Server.RoutePort())
	}
	return nodes, nil
}
