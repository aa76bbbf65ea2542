package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// RestartEtcd kills etcd and starts it again on its data. kube-apiserver finds
// its way back by itself.
func (c *Cluster) RestartEtcd(ctx context.Context) error {
	c.kill(Etcd)
	return c.startAgain(ctx, c.startEtcd, 0)
}

// BackupEtcd copies etcd's data to a directory that must not exist yet. etcd is
// down for that time.
func (c *Cluster) BackupEtcd(ctx context.Context, dir string) error {
	c.kill(Etcd)
	err := os.CopyFS(dir, os.DirFS(c.etcdData()))
	return errors.Join(err, c.startAgain(ctx, c.startEtcd, 0))
}

// RestoreEtcd brings the state back that BackupEtcd has copied: whatever was
// written since is undone, and resource versions go back. kube-apiserver starts
// again, as it has to after a restore.
func (c *Cluster) RestoreEtcd(ctx context.Context, dir string) error {
	c.kill(APIServer)
	c.kill(Etcd)
	if err := os.RemoveAll(c.etcdData()); err != nil {
		return err
	}
	if err := os.CopyFS(c.etcdData(), os.DirFS(dir)); err != nil {
		return err
	}
	if err := c.startAgain(ctx, c.startEtcd, 0); err != nil {
		return err
	}
	return c.startAgain(ctx, c.startAPIServer, 1)
}

// CompactEtcd has etcd forget all states but the current one, so that a watch
// that goes on from an older one is refused.
func (c *Cluster) CompactEtcd(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"unix://" + filepath.Join(c.dir, etcdSocket)},
		DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer client.Close()
	now, err := client.Get(ctx, "compact")
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	_, err = client.Compact(ctx, now.Header.Revision)
	return err
}

func (c *Cluster) etcdData() string { return filepath.Join(c.dir, "etcd") }

// kill ends the processes of a component. It reports whether there was one.
func (c *Cluster) kill(component string) (any bool) {
	for _, p := range c.Processes() {
		if strings.HasPrefix(p.Name, component) {
			p.Kill()
			any = true
		}
	}
	return any
}

// startAgain starts a component and gives it its place in the order of the
// processes: Close ends them in the opposite order, this one after its clients.
func (c *Cluster) startAgain(ctx context.Context, start func(context.Context) error, place int) error {
	if err := start(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.processes) - 1
	c.processes = slices.Insert(c.processes[:last:last], place, c.processes[last])
	return nil
}
