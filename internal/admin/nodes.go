package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// nodeTimeout bounds a request to another node: its answerTimeout, and some round trips between continents.
	nodeTimeout = answerTimeout + time.Second
	// maxAnswerBytes bounds the answer of another node.
	maxAnswerBytes = 256 << 20
)

// nodes sends requests to the nodes of a cluster.
type nodes struct {
	cluster Cluster
	// own handles requests that concern this node only.
	own http.Handler
	log Log
}

// answering returns the names of the nodes that are not dead, this node first.
func (n *nodes) answering() []string {
	self := n.cluster.Self()
	names := []string{self}
	for _, node := range n.cluster.Nodes() {
		if node.Name != self && node.State != NodeDead {
			names = append(names, node.Name)
		}
	}
	return names
}

// askEach sends a request to all nodes that answer, this one included, and returns the answers in the order of the
// names.
func (n *nodes) askEach(ctx context.Context, q request) []result {
	names := n.answering()
	answers := make([]result, 0, len(names))
	for answer := range n.askAll(ctx, names, q) {
		answers = append(answers, answer)
	}
	slices.SortFunc(answers, func(a, b result) int { return strings.Compare(a.node, b.node) })
	return answers
}

// askAll sends a request to nodes at the same time. The channel has the answers in the order of their arrival, and is
// closed after the last.
func (n *nodes) askAll(ctx context.Context, nodes []string, q request) <-chan result {
	answers := make(chan result, len(nodes))
	var asked sync.WaitGroup
	for _, node := range nodes {
		asked.Go(func() { answers <- n.ask(ctx, node, q) })
	}
	go func() {
		asked.Wait()
		close(answers)
	}()
	return answers
}

// ask sends a request to a node, this one included, and returns its answer.
func (n *nodes) ask(ctx context.Context, node string, q request) result {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, APIPath+q.path, bytes.NewReader(q.body))
	if err != nil {
		return result{node: node, err: err}
	}
	if q.noneMatch != "" {
		r.Header.Set("If-None-Match", q.noneMatch)
	}
	if node == n.cluster.Self() {
		r.RemoteAddr = q.remote
		return n.askSelf(r)
	}
	response, err := n.cluster.Do(node, r)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("the node does not answer within %v", nodeTimeout)
		}
		return result{node: node, err: err}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil && len(data) > maxAnswerBytes {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswerBytes)
	}
	return result{node, response.StatusCode, data, err}
}

// askSelf serves a request on this node. A panic of the handler is logged, and an error of the answer: the goroutine is
// not that of a request, whose panics are confined.
func (n *nodes) askSelf(r *http.Request) (answer result) {
	answer.node = n.cluster.Self()
	c := &capture{header: http.Header{}, status: http.StatusOK}
	defer func() {
		if value := recover(); value != nil {
			n.log.Error("panic in a request of an operator", zap.Any("panic", value),
				zap.ByteString("stack", debug.Stack()))
			answer.err = errors.New("internal error of the server")
			return
		}
		answer.status, answer.body = c.status, c.body.Bytes()
	}()
	n.own.ServeHTTP(c, r)
	return answer
}

// capture is a http.ResponseWriter that keeps the response.
type capture struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *capture) Header() http.Header            { return c.header }
func (c *capture) WriteHeader(status int)         { c.status = status }
func (c *capture) Write(data []byte) (int, error) { return c.body.Write(data) }
