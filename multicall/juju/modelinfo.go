package juju

import (
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/status"
)

// modelInfo is an environment as Juju 3 shows it.
type modelInfo struct {
	Name           string      `json:"name" yaml:"name"`
	ShortName      string      `json:"short-name" yaml:"short-name"`
	UUID           string      `json:"model-uuid" yaml:"model-uuid"`
	Type           string      `json:"model-type" yaml:"model-type"`
	ControllerUUID string      `json:"controller-uuid" yaml:"controller-uuid"` // the environment's UUID
	Controller     string      `json:"controller-name" yaml:"controller-name"`
	IsController   bool        `json:"is-controller" yaml:"is-controller"`
	Cloud          string      `json:"cloud" yaml:"cloud"`
	Life           state.Life  `json:"life" yaml:"life"`
	Status         status.Info `json:"status" yaml:"status"`
}

// newModelInfo describes an environment by this host's record of it. It does not read the environment's store,
// so every environment that is not being removed is shown as available.
func newModelInfo(e home.Environment) modelInfo {
	info := modelInfo{
		Name:           home.Owner + "/" + e.Name,
		ShortName:      e.Name,
		UUID:           e.UUID,
		Type:           "iaas",
		ControllerUUID: e.UUID, // there are no controllers
		Controller:     home.Controller,
		Cloud:          e.Provider,
		Life:           state.Alive,
		Status:         status.Info{Current: "available"},
	}

	if e.Phase == home.Removing {
		info.Life = state.Dying
		info.Status.Current = "destroying"
	}
	return info
}
