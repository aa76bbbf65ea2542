package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startLimit bounds the start of a component. Seconds are usual; a machine that
// is busy building something else may need far more.
const startLimit = 3 * time.Minute

// Cluster is a running control plane. Its methods may be called from any
// goroutine.
type Cluster struct {
	options   Options
	dir       string
	temporary bool
	port      int
	lock      *os.File

	config *rest.Config
	client kubernetes.Interface

	failed chan error // receives the first death that nobody asked for

	mu        sync.Mutex
	processes []*Process // in the order of their start
	names     map[string]int
	// controlPlane hosts kube-apiserver and kube-controller-manager from their next start on.
	controlPlane string
}

// Start starts a control plane and returns when it serves: kube-apiserver is
// ready, its RBAC rules and those of Berth and kwok are in place, and pods can
// be created in the namespace "default". The context bounds the start, not the
// cluster's life; Close ends that.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, dir: options.Dir, port: options.Port, failed: make(chan error, 1), names: map[string]int{}, controlPlane: options.ControlPlane}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	if err := c.prepareDir(); err != nil {
		return err
	}
	if c.port == 0 {
		port, err := freePort()
		if err != nil {
			return err
		}
		c.port = port
	}
	if err := c.writeCredentials(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(Admin))
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit: kube-apiserver is what is slow
	c.config = config
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	if c.client, err = kubernetes.NewForConfig(typed); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.applyRBAC(ctx); err != nil {
		return err
	}
	if !c.options.WithoutKWOK {
		if err := c.startKWOK(); err != nil {
			return err
		}
	}
	if !c.options.WithoutControllers {
		return c.startControllers(ctx)
	}
	return nil
}

// prepareDir makes the lab's directory and locks it against a second lab.
func (c *Cluster) prepareDir() error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "berth-lab-")
		if err != nil {
			return err
		}
		c.dir, c.temporary = dir, true
	}
	for _, dir := range []string{c.dir, filepath.Join(c.dir, "pki"), filepath.Join(c.dir, "logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("the lab's directory: %w", err)
		}
	}
	lock, err := lockFile(filepath.Join(c.dir, "lock"))
	if err != nil {
		return err
	}
	c.lock = lock
	return nil
}

// RestartAPIServer kills kube-apiserver and starts it again on the same port and
// the same data. It returns when the server is ready; its clients have to find
// their way back themselves.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.kill(APIServer)
	return c.startAgain(ctx, c.startAPIServer, 1)
}

// ChangeControlPlane kills kube-apiserver and kube-controller-manager, if that
// runs, and starts those of another program on the same port and the same data, as
// an upgrade or a downgrade does. It returns the program that hosted them before,
// when the server is ready.
func (c *Cluster) ChangeControlPlane(ctx context.Context, program string) (before string, err error) {
	controllers := c.kill(ControllerManager)
	c.kill(APIServer)
	c.mu.Lock()
	before, c.controlPlane = c.controlPlane, program
	c.mu.Unlock()
	if err := c.startAgain(ctx, c.startAPIServer, 1); err != nil || !controllers {
		return before, err
	}
	return before, c.startAgain(ctx, c.startControllers, 2)
}

// Close ends all children, schedulers first and etcd last, and removes the
// directory if it was a temporary one, except for the logs that an error names. A
// second Close does nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	processes := slices.Clone(c.processes)
	c.processes = nil
	c.mu.Unlock()
	for _, p := range processes {
		p.expected.Store(true)
	}
	var errs []error
	quoted := false
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Stop())
		quoted = quoted || p.quoted.Load()
	}
	if c.lock != nil {
		c.lock.Close()
		c.lock = nil
	}
	if c.temporary && c.dir != "" {
		errs = append(errs, c.removeDir(quoted))
	}
	return errors.Join(errs...)
}

// removeDir removes the lab's directory, or all that is in it but the logs.
func (c *Cluster) removeDir(keepLogs bool) error {
	if !keepLogs {
		return os.RemoveAll(c.dir)
	}
	entries, err := os.ReadDir(c.dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != "logs" {
			errs = append(errs, os.RemoveAll(filepath.Join(c.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Dir is the lab's directory.
func (c *Cluster) Dir() string { return c.dir }

// AdminConfig is a client configuration of the administrator, without a limit
// on the client's side. The caller may change it.
func (c *Cluster) AdminConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client is a client of the administrator.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Failed receives an error when a child has ended that nobody stopped: its name,
// how it ended and the end of its log.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Processes lists the running children in the order of their start.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.processes), func(p *Process) bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
}

// server is kube-apiserver's address.
func (c *Cluster) server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port) }

// name is the name of the next process of a component: a second one gets a
// number, as in berth-scheduler-2.
func (c *Cluster) name(component string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[component]++
	if n := c.names[component]; n > 1 {
		return fmt.Sprintf("%s-%d", component, n)
	}
	return component
}

// launch starts a child and watches for its end.
func (c *Cluster) launch(name string, environment []string, program string, arguments ...string) (*Process, error) {
	log := filepath.Join(c.dir, "logs", name+".log")
	p, err := startProcess(name, c.dir, log, environment, program, arguments...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	go func() {
		<-p.done
		if err := p.Death(); err != nil {
			select {
			case c.failed <- err:
			default: // the first death is the one to look at
			}
		}
	}()
	return p, nil
}

// Launch starts a program that is not of the cluster and ends with it.
func (c *Cluster) Launch(name, program string, arguments ...string) (*Process, error) {
	return c.launch(c.name(name), nil, program, arguments...)
}

// launchSelf starts a component that the lab's own executable hosts.
func (c *Cluster) launchSelf(component string, environment []string, arguments ...string) (*Process, error) {
	return c.launchHosted(c.options.Executable, component, environment, arguments...)
}

// launchControlPlane starts kube-apiserver or kube-controller-manager.
func (c *Cluster) launchControlPlane(component string, arguments ...string) (*Process, error) {
	c.mu.Lock()
	program := c.controlPlane
	c.mu.Unlock()
	return c.launchHosted(program, component, nil, arguments...)
}

// launchHosted starts a component that a program hosts.
func (c *Cluster) launchHosted(program, component string, environment []string, arguments ...string) (*Process, error) {
	arguments = append([]string{ChildCommand, component}, arguments...)
	return c.launch(c.name(component), environment, program, arguments...)
}

// Ports below those that systems give to connections by themselves: one that is free
// stays so until it is listened on.
const firstPort, lastPort = 12000, 32000

// freePort is a port on the loopback device that nobody listens on just now.
func freePort() (int, error) {
	var taken error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
		taken = err
	}
	return 0, fmt.Errorf("looking for a free port: %w", taken)
}
