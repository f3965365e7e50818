# The daemon in a container: `docker build -t duestream .`, then `docker run duestream` or deploy/compose.yaml.
# What must hold: the last stage has what the daemon runs and nothing else; it does not run as root; nothing in it can be
# written by the user it runs as; a SIGTERM reaches node itself. test/flow/container.test.ts carries out these steps.

ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS dependencies
ENV npm_config_cache=/var/cache/npm
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No script of a dependency runs, in no stage.
RUN --mount=type=cache,target=/var/cache/npm npm ci --omit=dev --ignore-scripts

FROM node:${NODE_VERSION}-slim AS build
ENV npm_config_cache=/var/cache/npm
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/var/cache/npm npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY lua lua
# What the scripts were put together from stays behind.
RUN npm run build && rm -r lua/lib lua/verbs lua/assemble.mjs

FROM node:${NODE_VERSION}-slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="duestream" \
      org.opencontainers.image.description="Delayed jobs for the Redis you already have" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
WORKDIR /app
# What changes least comes first, so that a new version is a small layer.
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE CHANGELOG.md ./
COPY config config
COPY --from=build /app/lua lua
COPY --from=build /app/dist dist
# A number, so that Kubernetes can see that it is not root (runAsNonRoot). The files belong to root.
USER 1000:1000
EXPOSE 7420
STOPSIGNAL SIGTERM
# Health is served on the container's own loopback whatever else is configured; a worker needs --http-port for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.DUESTREAM_HTTP__PORT || 7420) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/main.js"]
CMD ["start"]
