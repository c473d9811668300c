package nats
