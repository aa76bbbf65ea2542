package defaultbinder

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// New returns the plugin, which binds every pod through the API's binding subresource.
func New() framework.Plugin {
	return framework.Plugin{
		Name: names.DefaultBinder,
		Bind: func(*object.Pod, string) bool { return true },
	}
}
