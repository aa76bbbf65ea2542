// Package defaultbinder binds pods through the API's binding subresource.
package defaultbinder
