package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// SchedulerOptions says which scheduler to start, and how.
type SchedulerOptions struct {
	// Kind is Berth or KubeScheduler.
	Kind string
	// Binary is the berth-scheduler to run. Empty: the one beside the running
	// executable. kube-scheduler is hosted by the lab's own.
	Binary string
	// Config is a KubeSchedulerConfiguration (YAML), nil for the defaults. Its
	// clientConnection.kubeconfig is replaced; qps and burst, if it has none,
	// become high enough not to matter.
	Config []byte
	// Kubeconfig says who it is. Empty: the kind's own identity.
	Kubeconfig string
	// LeaderElect has the scheduler work only while it holds the lease.
	LeaderElect bool
	// Port is where it serves health and metrics, on 127.0.0.1; 0 is any free one.
	Port int
	// Flags come after the lab's own, so that they override them.
	Flags []string
	// Environment comes after the lab's own: NAME=VALUE.
	Environment []string
}

// Check says what is wrong with the options, without starting anything.
func (o SchedulerOptions) Check() error {
	switch o.Kind {
	case KubeScheduler:
	case Berth:
		if _, err := berthBinary(o.Binary); err != nil {
			return err
		}
	default:
		return fmt.Errorf("scheduler %q: must be %s or %s", o.Kind, Berth, KubeScheduler)
	}
	_, err := o.config("")
	return err
}

// Scheduler is a running scheduler. The embedded Process stops or kills it.
type Scheduler struct {
	*Process
	Kind string
	Port int // of health and metrics, over TLS
}

// clientQPS is what the lab gives a scheduler whose configuration names none.
const clientQPS, clientBurst = 5000, 10000

// StartScheduler starts a scheduler under its own identity and returns when it
// says that it is ready.
func (c *Cluster) StartScheduler(ctx context.Context, options SchedulerOptions) (*Scheduler, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	port := options.Port
	if port == 0 {
		free, err := freePort()
		if err != nil {
			return nil, err
		}
		port = free
	}
	kubeconfig := cmp.Or(options.Kubeconfig, c.Kubeconfig(options.Kind))
	config, err := options.config(kubeconfig)
	if err != nil {
		return nil, err
	}
	name := c.name(options.Kind)
	path := filepath.Join(c.dir, name+".yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, err
	}
	arguments := append([]string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + path,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		fmt.Sprintf("--leader-elect=%t", options.LeaderElect),
	}, options.Flags...)
	p, err := c.launchScheduler(name, options, arguments)
	if err != nil {
		return nil, err
	}
	ready := readiness(port)
	if err := p.waitUntil(ctx, 50*time.Millisecond, ready); err != nil {
		p.Kill()
		return nil, err
	}
	return &Scheduler{Process: p, Kind: options.Kind, Port: port}, nil
}

func (c *Cluster) launchScheduler(name string, options SchedulerOptions, arguments []string) (*Process, error) {
	if options.Kind == KubeScheduler {
		return c.launch(name, options.Environment, c.options.Executable, append([]string{ChildCommand, KubeScheduler}, arguments...)...)
	}
	binary, err := berthBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	return c.launch(name, options.Environment, binary, arguments...)
}

// berthBinary is the absolute path of the berth-scheduler to run.
func berthBinary(named string) (string, error) {
	path := named
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(self), Berth)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the scheduler to run: %w", err)
	}
	return path, nil
}

// config is the user's configuration, or the defaults, with the lab's
// connection to the cluster.
func (o SchedulerOptions) config(kubeconfig string) ([]byte, error) {
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	if o.Config != nil {
		config = nil
		if err := yaml.UnmarshalStrict(o.Config, &config); err != nil {
			return nil, fmt.Errorf("the scheduler's configuration: %w", err)
		}
		if config == nil {
			return nil, errors.New("the scheduler's configuration is empty")
		}
	}
	if config["clientConnection"] == nil {
		config["clientConnection"] = map[string]any{}
	}
	connection, ok := config["clientConnection"].(map[string]any)
	if !ok {
		return nil, errors.New("the scheduler's configuration: clientConnection: must be a mapping")
	}
	connection["kubeconfig"] = kubeconfig
	if _, ok := connection["qps"]; !ok {
		connection["qps"] = clientQPS
	}
	if _, ok := connection["burst"]; !ok {
		connection["burst"] = clientBurst
	}
	return yaml.Marshal(config)
}

// ServedName is the schedulerName of the first profile, for pods that name none: empty
// where the configuration serves these, as without profiles.
func (o SchedulerOptions) ServedName() string {
	var config struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	_ = yaml.Unmarshal(o.Config, &config) // Check tells what is wrong with it
	for _, p := range config.Profiles {
		if p.SchedulerName == "" || p.SchedulerName == corev1.DefaultSchedulerName {
			return ""
		}
	}
	if len(config.Profiles) == 0 {
		return ""
	}
	return config.Profiles[0].SchedulerName
}

// readiness asks a scheduler's /readyz, whose certificate nobody signed.
func readiness(port int) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	url := fmt.Sprintf("https://127.0.0.1:%d/readyz", port)
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	}
}
