package testbed

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/config"
)

// NewCluster starts servers in this process that are the nodes of a cluster. The certificates are in a directory. If
// change is not nil, change changes the configuration of each node. A name may have a region, as in name@region: a room
// then spans the regions of its participants.
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
		name, region, _ := strings.Cut(name, "@")
		c := ConferenceConfig()
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = url, 0, filepath.Join(directory, name)
		if change != nil {
			change(&c)
		}
		if err := authority.Issue(c.Cluster.Directory, name, region, now, time.Hour); err != nil {
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
