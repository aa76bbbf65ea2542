package config

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// YAML renders a complete configuration as a file that reads back as the same
// configuration. It leaves out secrets: private keys of extenders, and
// passwords in their addresses. As in kube-scheduler, pluginConfig has only the entries
// of enabled plugins, sorted by name.
func YAML(c *Config) ([]byte, error) {
	c = Redacted(c)
	for i := range c.Profiles {
		p := &c.Profiles[i]
		enabled := enabledNames(p.Plugins)
		p.PluginConfig = slices.DeleteFunc(p.PluginConfig, func(pc configv1.PluginConfig) bool {
			plugin := pc.Name
			if plugin == names.CoschedulingLabels || plugin == names.CoschedulingStatus {
				plugin = names.Coscheduling
			}
			return plugin != profile.GroupTopology && plugin != framework.PreemptionBudgets && !slices.Contains(enabled, plugin)
		})
		slices.SortFunc(p.PluginConfig, func(a, b configv1.PluginConfig) int { return strings.Compare(a.Name, b.Name) })
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return terminal.YAML(text)
}

// Redacted is a copy of the configuration that anybody may read: without private
// keys of extenders and passwords in their addresses.
func Redacted(c *Config) *Config {
	c = c.DeepCopy()
	for i := range c.Extenders {
		redact(&c.Extenders[i])
	}
	return c
}

func redact(e *configv1.Extender) {
	if u, err := url.Parse(e.URLPrefix); err == nil {
		e.URLPrefix = u.Redacted()
	} else {
		e.URLPrefix = "" // not a URL: no telling where a password ends
	}
	if e.TLSConfig != nil && len(e.TLSConfig.KeyData) > 0 {
		// The field is written in base64: these are the bytes that then read as kubectl's mark.
		e.TLSConfig.KeyData, _ = base64.StdEncoding.DecodeString("DATA+OMITTED")
	}
}
