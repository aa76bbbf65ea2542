package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/cluster"
)

func newUpCommand() *cobra.Command {
	return &cobra.Command{Use: "up", RunE: func(*cobra.Command, []string) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		began := time.Now()
		c, err := cluster.Start(ctx, cluster.Options{})
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Println(time.Since(began), c.Dir())
		if err := c.CreateNodes(ctx, cluster.Nodes(100)); err != nil {
			return err
		}
		fmt.Println(time.Since(began), "nodes")
		if _, err := c.StartScheduler(ctx, cluster.SchedulerOptions{Kind: cluster.KubeScheduler}); err != nil {
			return err
		}
		fmt.Println(time.Since(began), "scheduler")
		for _, p := range c.Processes() {
			u, err := p.Usage()
			fmt.Println(p.Name, p.PID(), u.CPU, u.RSS>>20, u.PeakRSS>>20, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.Failed():
			return err
		}
	}}
}
