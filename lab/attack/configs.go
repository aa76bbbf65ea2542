package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-scheduler/berth/lab/cluster"
)

var configAttacks = []Attack{
	{Name: "config/refused", Short: true, start: configured, play: refusedConfig,
		Title: "a configuration with secret values is refused: who is told why?"},
	{Name: "config/fifo", start: configured, play: fifoConfig,
		Title: "a FIFO takes the configuration's place for a while"},
	{Name: "config/endless", start: configured, play: endlessConfig,
		Title: "a link to a file without end takes the configuration's place"},
	{Name: "rights/reader", Short: true, start: plain, play: readersRights,
		Title: "what the roles for readers let somebody do with the API server"},
	{Name: "rights/hidden", Short: true, start: plain, play: hiddenPods,
		Title: "pods that are blocked by pods of a namespace that the asking person may not read"},
}

// configFile is the path of the configuration that the daemon reads.
func (s *stage) configFile() string { return filepath.Join(s.dir, "scheduler.yaml") }

// configured starts a daemon with a configuration file of the attack.
func configured(s *stage) cluster.SchedulerOptions {
	s.writeConfig("")
	return cluster.SchedulerOptions{Flags: []string{"--config=" + s.configFile()}}
}

// writeConfig replaces the configuration by one with more in it.
func (s *stage) writeConfig(more string) {
	next := s.file("next.yaml", fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}
%s
`, s.lab.Kubeconfig(cluster.Berth), more))
	s.note(os.Rename(next, s.configFile()))
}

// reloads waits until the daemon has taken a configuration over, or refused it. A daemon
// that was killed has broken another bound.
func (s *stage) reloads(result string) bool {
	return s.await(30*time.Second, func() bool {
		return s.daemonGone() || s.metric("berth_config_reloads_total", fmt.Sprintf("result=%q", result)) > 0
	})
}

func refusedConfig(s *stage) {
	const secret = "s3cret-value"
	s.secrets = []string{secret, "schedulerNameX", s.configFile()}
	s.writeConfig("profiles: [{schedulerNameX: " + secret + "}]")
	if !s.reloads("refused") {
		s.broke("a wrong configuration was not refused within 30 s")
	}
}

// replaced checks that a good configuration is taken over after one that was none.
func (s *stage) replaced() {
	s.rest(12 * time.Second) // two looks at the file, and more
	s.writeConfig("podInitialBackoffSeconds: 2")
	if !s.reloads("applied") {
		s.broke("a good configuration was not taken over within 30 s")
	}
}

func fifoConfig(s *stage) {
	next := filepath.Join(s.dir, "fifo")
	s.note(syscall.Mkfifo(next, 0o600))
	s.note(os.Rename(next, s.configFile()))
	s.replaced()
}

func endlessConfig(s *stage) {
	next := filepath.Join(s.dir, "link")
	s.note(os.Symlink("/dev/zero", next))
	s.note(os.Rename(next, s.configFile()))
	s.replaced()
}

func readersRights(s *stage) {
	for _, right := range []struct{ verb, namespace, resource, subresource, name string }{
		{"create", "kube-system", "pods", "portforward", "some-pod"}, {"create", "kube-system", "pods", "exec", "some-pod"},
		{"get", "kube-system", "pods", "portforward", "some-pod"}, {"get", "kube-system", "secrets", "", "some-secret"},
		{"list", "", "pods", "", ""}, {"create", "kube-system", "pods", "", ""}, {"update", "kube-system", "leases", "", "kube-scheduler"},
	} {
		if s.may(s.lab.reader, right.verb, right.namespace, right.resource, right.subresource, right.name) {
			s.broke("a reader may %s %s %s/%s", right.verb, right.namespace, right.resource, right.subresource)
		}
	}
}
