package tool

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-scheduler/berth/edge/untrusted"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// Bounds of a completion.
const (
	completionTime = 2 * time.Second
	mostCompleted  = 1000 // names
)

// complete returns what may stand in a place, by what stands there already.
type complete func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective)

// names completes with what list returns, once it is known which cluster it is. It never
// shows an error.
func names(list func(ctx context.Context, toComplete string) []string) complete {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		parent := cmp.Or(cmd.Context(), context.Background())
		ctx, cancel := context.WithTimeout(parent, completionTime)
		defer cancel()
		found := make(chan []string, 1)
		go func() { found <- list(ctx, toComplete) }() // a credential plugin may hang
		select {
		case all := <-found:
			all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, toComplete) })
			return all, cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// list returns objects of the core group; namespace "" means all.
func (c connection) list(ctx context.Context, resource, namespace string) []metav1.PartialObjectMetadata {
	config, err := c.config()
	if err != nil {
		return nil
	}
	config.Timeout = completionTime
	config.Wrap(untrusted.Answers(mostAnswer))
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true // the shell has it
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	found, err := client.Resource(v1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: mostCompleted})
	if err != nil {
		return nil
	}
	return found.Items
}

// objects completes with the names of a core resource, in all namespaces. It offers none if they
// cannot be listed.
func (c connection) objects(resource string) complete {
	return names(func(ctx context.Context, _ string) []string { return namesOf("", c.list(ctx, resource, "")) })
}

func namesOf(prefix string, objects []metav1.PartialObjectMetadata) []string {
	var all []string
	for i := range objects {
		all = append(all, prefix+objects[i].Name)
	}
	return all
}

// pods completes NAME, of the namespace that counts without one, or NAMESPACE/NAME.
func (c connection) pods() complete {
	return names(func(ctx context.Context, toComplete string) []string {
		space, _, named := strings.Cut(toComplete, "/")
		if named {
			return namesOf(space+"/", c.list(ctx, "pods", space))
		}
		return namesOf("", c.list(ctx, "pods", cmp.Or(c.namespace(), metav1.NamespaceDefault)))
	})
}

func (c connection) zones() complete {
	return names(func(ctx context.Context, _ string) []string {
		zones := map[string]bool{}
		for _, n := range c.list(ctx, "nodes", "") {
			zones[n.Labels[v1.LabelTopologyZone]] = true
		}
		delete(zones, "")
		return slices.Sorted(maps.Keys(zones))
	})
}

// inKubeconfig completes with names that the kubeconfig holds.
func (c connection) inKubeconfig(of func(clientcmdapi.Config) []string) complete {
	return names(func(context.Context, string) []string {
		if c.check() != nil {
			return nil
		}
		raw, err := c.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil
		}
		return of(raw)
	})
}

// completeFlags completes the values of the flags that the command has.
func (c connection) completeFlags(cmd *cobra.Command) {
	for flag, f := range map[string]complete{
		"context":    c.inKubeconfig(func(raw clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(raw.Contexts)) }),
		"cluster":    c.inKubeconfig(func(raw clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(raw.Clusters)) }),
		"user":       c.inKubeconfig(func(raw clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(raw.AuthInfos)) }),
		"namespace":  c.objects("namespaces"),
		"node":       c.objects("nodes"),
		"nodes-like": c.objects("nodes"),
		"pod":        c.pods(),
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(err) // only for a flag that has one
		}
	}
}

// onlyFirst completes the first argument.
func onlyFirst(f complete) complete {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, toComplete)
	}
}

// changes completes the verb with which the first change, and each after a comma, begins,
// and what the verb is about.
func (c connection) changes() complete {
	about := map[string]complete{"drain": c.objects("nodes"), "cordon": c.objects("nodes"), "uncordon": c.objects("nodes"), "remove": c.objects("nodes"),
		"add-nodes": c.objects("nodes"), "lose-zone": c.zones(), "evict": c.pods()}
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		verb := ""
		for _, word := range args {
			if verb == "" {
				verb = word
			}
			if strings.HasSuffix(word, ",") {
				verb = ""
			}
		}
		switch {
		case verb == "":
			return whatif.Verbs(), cobra.ShellCompDirectiveNoFileComp
		case about[verb] != nil:
			return about[verb](cmd, args, toComplete)
		case verb == "apply":
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
