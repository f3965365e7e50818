import DefaultTheme from 'vitepress/theme';
import { theme as calls, useOpenapi } from 'vitepress-openapi/client';
import 'vitepress-openapi/dist/style.css';
import spec from '../../../docs/reference/openapi.json';
import './colours.css';

export default {
  extends: DefaultTheme,
  enhanceApp(context) {
    context.openapi = useOpenapi({
      spec,
      config: {
        // The page has its heading as Markdown. Nothing is sent from here: a daemon answers on a loopback address. Calls that a shell takes are in the how-to, where tests run them.
        operation: { hiddenSlots: ['header', 'playground', 'code-samples'] },
      },
    });
    calls.enhanceApp(context);
  },
};
