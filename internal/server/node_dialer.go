package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/member"
)

// nodeDialTimeout bounds the TCP and the TLS handshake with another node, together. The dial of a request goes on after
// the request has ended.
const nodeDialTimeout = 3 * time.Second

// nodeDialer connects to the listeners of other nodes for requests and websockets.
type nodeDialer struct {
	member *member.Member
	own    *certificate.Node
}

// dial connects to a node by its name, with TLS. The certificate has to be that of the node. The error wraps
// admin.ErrNode if there is no such node.
func (d nodeDialer) dial(ctx context.Context, node string) (net.Conn, error) {
	nodes := d.member.Nodes()
	at := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Home.Node == node })
	switch {
	case at < 0:
		return nil, fmt.Errorf("%w: the node has left", admin.ErrNode)
	case nodes[at].Proxy == "":
		return nil, fmt.Errorf("%w: the node has no address for other nodes", admin.ErrNode)
	}
	ctx, cancel := context.WithTimeout(ctx, nodeDialTimeout)
	defer cancel()
	return (&tls.Dialer{Config: d.own.TLSTo(node)}).DialContext(ctx, "tcp", nodes[at].Proxy)
}
