package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// etcdSocket is in the lab's directory, which is every child's working
// directory: a relative path stays within the length that a socket's may have.
// etcd wants an address to look like host:port, a file's too.
const etcdSocket = "etcd:2379"

func (c *Cluster) startEtcd(ctx context.Context) error {
	p, err := c.launchSelf(Etcd, nil, "--data-dir=etcd", "--socket="+etcdSocket)
	if err != nil {
		return err
	}
	return p.waitUntil(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", filepath.Join(c.dir, etcdSocket))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	arguments := []string{
		"--etcd-servers=unix://" + etcdSocket,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port),
		"--tls-cert-file=pki/kube-apiserver.crt",
		"--tls-private-key-file=pki/kube-apiserver.key",
		"--client-ca-file=pki/ca.crt",
		"--requestheader-client-ca-file=pki/" + frontProxy + ".crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=pki/service-account.key",
		"--service-account-signing-key-file=pki/service-account.key",
		"--service-cluster-ip-range=10.96.0.0/16",
		// No pod reaches the API server through the Service "kubernetes" here,
		// and a loopback address may not be among its endpoints.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		// Ten times the defaults: the lab's clients are to find no queue. Priority
		// and fairness share them out, to both schedulers alike (deploy/flowcontrol.yaml).
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--profiling=false",
	}
	if c.options.WithoutControllers || len(c.options.Controllers) > 0 {
		arguments = append(arguments, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	}
	p, err := c.launchControlPlane(APIServer, append(arguments, c.options.APIServerFlags...)...)
	if err != nil {
		return err
	}
	return p.waitUntil(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllers starts kube-controller-manager and, if all controllers run,
// waits for the first thing that pods need of it: the service account of the
// namespace "default".
func (c *Cluster) startControllers(ctx context.Context) error {
	// Nothing attaches volumes to nodes that kwok plays, and this controller
	// fills the log with one complaint a node, ten times a second.
	controllers := "*,-persistentvolume-attach-detach-controller"
	if len(c.options.Controllers) > 0 {
		controllers = strings.Join(c.options.Controllers, ",")
	}
	p, err := c.launchControlPlane(ControllerManager,
		"--kubeconfig="+c.Kubeconfig(ControllerManager),
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers="+controllers,
		"--use-service-account-credentials",
		"--service-account-private-key-file=pki/service-account.key",
		"--root-ca-file=pki/ca.crt",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		"--concurrent-deployment-syncs=10",
		"--concurrent-replicaset-syncs=10",
		"--concurrent-job-syncs=10",
		// See leaseSeconds.
		"--node-monitor-grace-period="+(3*leaseSeconds*time.Second).String(),
		"--profiling=false",
	)
	if err != nil || len(c.options.Controllers) > 0 {
		return err
	}
	return p.waitUntil(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// leaseSeconds is how long a node's lease lasts; kwok renews it each quarter of
// that. A kubelet's 40 seconds would be 500 writes a second for 5,000 nodes;
// this is 8. kube-controller-manager is given a grace period to match, so that
// its node lifecycle controller works as usual (it takes the not-ready taint
// off and puts condition taints on) and yet never finds a node too quiet.
const leaseSeconds = 2400

// kwokConfiguration comes before the stages: how nodes and pods are played.
var kwokConfiguration = fmt.Sprintf(`apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: true
  nodeLeaseDurationSeconds: %d
  nodeLeaseParallelism: 8
  nodePlayStageParallelism: 8
  podPlayStageParallelism: 8
  cidr: 10.128.0.1/9
  nodeIP: 10.64.0.1
`, leaseSeconds)

// nodeAllocatable is one stage more.
//
//go:embed allocatable.yaml
var nodeAllocatable string

// startKWOK starts kwok with the stages that it calls fast: a node is ready at
// once, a bound pod runs, a Job's pod then succeeds, a deleted pod goes.
func (c *Cluster) startKWOK() error {
	config := strings.Join([]string{
		kwokConfiguration,
		nodefast.DefaultNodeInit, nodeAllocatable, podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}, "\n---\n")
	path := filepath.Join(c.dir, "kwok.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	// A user's own kwok configuration, which it would read too, stays out.
	environment := []string{"KWOK_WORKDIR=" + c.dir}
	_, err := c.launchSelf(KWOK, environment, "--kubeconfig="+c.Kubeconfig(KWOK), "--config="+path, "--v=WARN")
	return err
}
