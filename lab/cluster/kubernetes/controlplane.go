package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// Programs are the paths of the programs.
type Programs struct {
	Etcd, Server, Controllers, Helm string
}

// FindPrograms finds the programs in a folder, else in the search path. Errors wrap lab.ErrUnable, and name the command
// that installs the program.
func FindPrograms(folder string) (p Programs, err error) {
	for _, wanted := range []struct {
		path          *string
		name, install string
	}{
		{&p.Etcd, "etcd", "apt-get install etcd-server"},
		{&p.Server, "kube-apiserver", "make kubernetes"},
		{&p.Controllers, "kube-controller-manager", "make kubernetes"},
		{&p.Helm, "helm", "make kubernetes"},
	} {
		if *wanted.path, err = exec.LookPath(filepath.Join(folder, wanted.name)); err == nil {
			continue
		}
		if *wanted.path, err = exec.LookPath(wanted.name); err != nil {
			return Programs{}, fmt.Errorf("%w: there is no program %s, neither in %s nor in the search path; %s installs it",
				lab.ErrUnable, wanted.name, folder, wanted.install)
		}
	}
	return p, nil
}

// Addresses of etcd, on loopback of the control plane's host, and the port of the server of the API.
const (
	etcdURL    = "http://127.0.0.1:2379"
	peerURL    = "http://127.0.0.1:2380"
	serverPort = 6443
)

// readyPatience bounds the time until the control plane answers, on a machine with other work.
const readyPatience = 2 * time.Minute

// ControlPlane is etcd, the server of the API, and the controllers.
type ControlPlane struct {
	// Client may do everything.
	Client    *Client
	setup     *Setup
	network   Network
	processes context.Context
	// running are the programs in the order of their start.
	running []*lab.Program
}

// startControlPlane starts the programs, which end with the context of processes, and waits until the server of the API
// is ready.
func startControlPlane(ctx, processes context.Context, setup *Setup, network Network) (c *ControlPlane, err error) {
	c = &ControlPlane{setup: setup, network: network, processes: processes}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	token, address := rand.Text(), setup.Control.Address.String()
	if err := c.writeFiles(token); err != nil {
		return nil, err
	}
	if err := c.start("etcd", setup.Programs.Etcd, "--data-dir", c.path("etcd"), "--listen-client-urls", etcdURL,
		"--advertise-client-urls", etcdURL, "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
		"--initial-cluster", "default="+peerURL); err != nil {
		return nil, err
	}
	if err := c.start("kube-apiserver", setup.Programs.Server, "--etcd-servers", etcdURL, "--bind-address", address,
		"--advertise-address", address, "--secure-port", fmt.Sprint(serverPort), "--cert-dir", c.path("certificates"),
		"--authorization-mode", "AlwaysAllow", "--token-auth-file", c.path("tokens.csv"),
		"--service-account-issuer", c.url(), "--service-account-key-file", c.path("accounts.pem"),
		"--service-account-signing-key-file", c.path("accounts.pem"), "--service-cluster-ip-range", "10.96.0.0/16",
		"--endpoint-reconciler-type", "none"); err != nil {
		return nil, err
	}
	if err := c.awaitServer(ctx, token); err != nil {
		return nil, err
	}
	return c, c.start("kube-controller-manager", setup.Programs.Controllers, "--kubeconfig", c.path("kubeconfig"),
		"--service-account-private-key-file", c.path("accounts.pem"), "--leader-elect=false", "--secure-port", "0",
		"--cert-dir", c.path("certificates"))
}

// path returns the path of a file of the control plane.
func (c *ControlPlane) path(name string) string { return filepath.Join(c.setup.Folder, name) }

// url is the address of the server of the API.
func (c *ControlPlane) url() string {
	return "https://" + netip.AddrPortFrom(c.setup.Control.Address, serverPort).String()
}

// certificate is the path of the certificates of the server, which the server makes.
func (c *ControlPlane) certificate() string { return c.path("certificates/apiserver.crt") }

// writeFiles writes the files that the programs read.
func (c *ControlPlane) writeFiles(token string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: lab, user: {token: %q}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
current-context: lab
`, c.url(), c.certificate(), token)
	return errors.Join(
		os.WriteFile(c.path("accounts.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
			0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(token+",lab,lab,system:masters\n"), 0o600),
		os.WriteFile(c.path("kubeconfig"), []byte(kubeconfig), 0o600))
}

func (c *ControlPlane) start(name, path string, arguments ...string) error {
	p, err := lab.StartCommand(name, c.network.Command(c.processes, c.setup.Control.Name, path, arguments...), nil)
	if err == nil {
		c.running = append(c.running, p)
	}
	return err
}

// awaitServer waits until the server of the API is ready.
func (c *ControlPlane) awaitServer(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	var last error
	for {
		var certificates []byte
		if certificates, last = os.ReadFile(c.certificate()); last == nil {
			if c.Client, last = newClient(c.url(), token, certificates); last == nil {
				var namespace struct{}
				if last = c.Client.Get(ctx, "/api/v1/namespaces/kube-system", &namespace); last == nil {
					return nil
				}
			}
		}
		for _, p := range c.running {
			select {
			case <-p.Ended():
				return errors.Join(errors.New("the control plane has ended"), p.Wait(ctx))
			default:
			}
		}
		if err := lab.Pause(ctx, tick); err != nil {
			return fmt.Errorf("the control plane is not ready: %w", errors.Join(err, last))
		}
	}
}

// Helm runs helm with the cluster.
func (c *ControlPlane) Helm(ctx context.Context, arguments ...string) error {
	command := c.network.Command(ctx, c.setup.Control.Name, c.setup.Programs.Helm,
		append(arguments, "--kubeconfig", c.path("kubeconfig"))...)
	command.Env = append(command.Env, "HELM_CACHE_HOME="+c.path("helm"), "HELM_CONFIG_HOME="+c.path("helm"),
		"HELM_DATA_HOME="+c.path("helm"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", arguments[0], err, output)
	}
	return nil
}

// close ends the programs, the last one first.
func (c *ControlPlane) close() error {
	for i := len(c.running) - 1; i >= 0; i-- {
		c.running[i].Kill()
	}
	c.running = nil
	return nil
}
