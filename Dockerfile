# syntax=docker/dockerfile:1
# The workflow's job `image` runs these steps. What one sets: docs/guides/deploy.md

ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
# the manifests alone: a change of the sources uses the installed modules of the layer
COPY .npmrc package.json package-lock.json ./
COPY --parents packages/*/package.json ./
RUN --mount=type=cache,target=/root/.npm npm ci
COPY . .
RUN npm run build
RUN npm pack --ignore-scripts --pack-destination /tmp ./packages/trigate/build
RUN npm install --prefix /opt/trigate --omit=dev --ignore-scripts --no-package-lock /tmp/trigate-*.tgz
WORKDIR /opt/trigate/node_modules/trigate
# The program caches its compiled code beside itself, for each user apart. So the user that will run it fills the cache here.
RUN mkdir .cache
RUN chown 65532:65532 .cache
USER 65532:65532
RUN node dist/trigate.js serve --check
# Node lets nobody but the owner read the cache, and in the image root owns it.
RUN chmod -R a+rX .cache

FROM node:${NODE_VERSION}-bookworm-slim AS gateway
LABEL org.opencontainers.image.title="Trigate" \
  org.opencontainers.image.description="A typed gateway for Hyperliquid, TON and an EVM layer 2" \
  org.opencontainers.image.source="https://github.com/trigate/trigate" \
  org.opencontainers.image.licenses="MIT"
COPY --from=build --chown=0:0 /opt/trigate /opt/trigate
ENV NODE_ENV=production TRIGATE_HOST=0.0.0.0 TRIGATE_PORT=8080
# trigate.config.yaml is looked for here
WORKDIR /etc/trigate
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.TRIGATE_PORT, path: '/health/live' }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "/opt/trigate/node_modules/trigate/dist/trigate.js"]
CMD ["serve"]
