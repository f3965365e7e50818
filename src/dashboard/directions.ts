/**
 * Characters that turn the direction of a line are shown as `\\u202e`, in every text of every page: an id of somebody else must
 * not look like another one. What is typed or edited keeps them.
 */
import { type ComponentChildren, options, type VNode } from 'preact';

const DIRECTION = /\p{Bidi_Control}/gu;

export const escapeDirections = (text: string): string =>
  text.replace(DIRECTION, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** From now on, wherever a text becomes part of a page. */
export function showDirections(): void {
  options.vnode = (node: VNode<Record<string, unknown>>) => {
    if (typeof node.type !== 'string' || node.type === 'textarea') return;
    const { children, title } = node.props;
    node.props.children = shown(children);
    if (typeof title === 'string') node.props.title = escapeDirections(title);
  };
}

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return escapeDirections(children);
  return Array.isArray(children) ? children.map(shown) : children;
}
